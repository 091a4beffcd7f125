/// Adds the benchmark PHOLD of simulators to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::phold {

/// Registers "phold.clock" and "phold.partition".
void register_phold(Program& program);

}  // namespace caftan::phold
