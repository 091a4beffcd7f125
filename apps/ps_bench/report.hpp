/// What the benchmark has measured, as tables, JSON and CSV.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ps_bench/config.hpp"
#include "ps_bench/statistics.hpp"

namespace caftan::ps_bench {

inline constexpr const char* kJsonName = "ps_bench_report.json";
inline constexpr const char* kCsvName = "ps_bench_report.csv";

/// The times of one worker.
struct Measured {
  std::string worker{};
  Times times{};
};

struct Report {
  MasterConfig config{};
  std::vector<Measured> trainers{};
  std::vector<Measured> servers{};
  double seconds = 0;        ///< of the measured epochs
  std::int64_t batches = 0;  ///< of all trainers, in these
};

/// Returns the names of a rule and a layout as the file has them.
const char* name_of(Rule rule) noexcept;
const char* name_of(Layout layout) noexcept;

/// Returns "1 trainer", "2 trainers".
std::string count_of(std::int64_t count, const char* one);

/// Returns the lines of a table for each worker, and of one for all trainers and one for all servers: of each metric
/// its smallest, largest and mean value, variance and standard deviation, in milliseconds.
/// Source: ProcessedMetricsPrinter of PyTorch's benchmarks/distributed/rpc/parameter_server, with the count besides.
std::vector<std::string> tables_of(const Report& report);

/// Returns the arguments and the same figures as JSON. A variance of a single value is null.
std::string json_of(const Report& report);

/// Returns a row for each worker and metric: role,worker,metric,count,min,max,mean,variance,stdev. The rows of all
/// workers of a role have "all" as worker; a variance of a single value is empty.
std::string csv_of(const Report& report);

}  // namespace caftan::ps_bench
