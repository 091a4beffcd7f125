/// Adds the CartPole role types to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::cartpole {

/// Registers "cartpole.agent" and "cartpole.observer".
void register_cartpole(Program& program);

}  // namespace caftan::cartpole
