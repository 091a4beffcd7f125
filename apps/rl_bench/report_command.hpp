/// The command `rl_report`: one report of the runs of a sweep.
#pragma once

namespace caftan::rl_bench {

inline constexpr const char* kReportUsage = "rl_report SWEEP [--out FILE]";

/// Reads benchmark_report.json of each run of a sweep's folder, writes one of all (into that folder, or to FILE) and
/// prints its table.
/// @param argv  "rl_report" is the second word
/// Returns the exit code: 0 success, 1 the report could not be written, 2 bad command line or folder.
int run_report_command(int argc, char** argv);

}  // namespace caftan::rl_bench
