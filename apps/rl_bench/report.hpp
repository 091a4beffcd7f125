/// benchmark_report.json: with the field names of PyTorch's benchmarks/distributed/rpc/rl, so that its plot script
/// reads it. The report of one run has one entry in "benchmark_results"; that of a sweep has one for each run, and
/// "x_axis_name" names the argument that differs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "rl_bench/measurement.hpp"

namespace caftan::rl_bench {

inline constexpr const char* kReportName = "benchmark_report.json";

/// The arguments of a run, as the original has them.
struct Arguments {
  std::int64_t world_size = 10;  ///< coordinator, agent and observers
  bool batch = true;
  std::string state_size{};
  std::int64_t nlayers = 5;
  std::int64_t out_features = 10;
};

/// Returns the report of one run. Latencies have microseconds: the original's have milliseconds.
std::string make_report(const Arguments& arguments, const std::vector<NamedPercentiles>& metrics);

/// Makes one report of those of several runs, in their order.
/// Errors: bad_arguments (no report, one that is damaged, or not exactly one argument that differs).
Result<std::string> join_reports(const std::vector<std::string>& reports);

/// Returns the lines that the original prints of a report: its arguments, and a table with a row for each run.
/// Errors: bad_arguments (a damaged report).
Result<std::vector<std::string>> table_of(const std::string& report);

}  // namespace caftan::rl_bench
