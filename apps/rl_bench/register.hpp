/// Adds the benchmark of calls in reinforcement learning to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::rl_bench {

/// Registers "rl_bench.coordinator", "rl_bench.agent" and "rl_bench.observer", and the command `rl_report`.
void register_rl_bench(Program& program);

}  // namespace caftan::rl_bench
