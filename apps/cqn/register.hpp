/// Adds the closed queueing network to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::cqn {

/// Registers "cqn.clock" and "cqn.partition".
void register_cqn(Program& program);

}  // namespace caftan::cqn
