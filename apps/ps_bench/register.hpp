/// Adds the benchmark of parameter servers to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::ps_bench {

/// Registers "ps_bench.master", "ps_bench.server" and "ps_bench.trainer".
void register_ps_bench(Program& program);

}  // namespace caftan::ps_bench
