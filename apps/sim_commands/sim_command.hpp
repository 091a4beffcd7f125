/// The command `caftan sim`: compares two runs of a simulation, draws their series or the speed-up of a sweep, and
/// pauses one that runs.
#pragma once

namespace caftan::sim_commands {

inline constexpr const char* kUsage = "sim diff RUN RUN | plot RUN|SWEEP [--out FILE] | pause RUN | go RUN | step RUN";

/// Runs the command. Returns the exit code: 0 = done, or no difference; 1 = a difference, or a failure; 2 = a bad
/// command line or no run with what is needed.
int run_command(int argc, char** argv);

}  // namespace caftan::sim_commands
