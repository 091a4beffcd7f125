/// Adds the role types of CartPole with batched requests to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::cartpole_batch {

/// Registers "cartpole_batch.agent" and "cartpole_batch.observer".
void register_cartpole_batch(Program& program);

}  // namespace caftan::cartpole_batch
