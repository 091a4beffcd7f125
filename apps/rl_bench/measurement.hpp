/// The benchmark's four metrics and their percentiles.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace caftan::rl_bench {

/// Which percentiles are reported.
inline constexpr std::array<int, 4> kPercentiles{50, 75, 90, 95};
using Percentiles = std::array<double, kPercentiles.size()>;

/// Returns the percentile of sorted values, linear between two of them, as NumPy's default has it.
/// Precondition: not empty; sorted.
double percentile(const std::vector<double>& sorted, double percent);

/// Returns all percentiles; zeros if there is no value.
Percentiles percentiles_of(std::vector<double> values);

/// What all episodes gave.
struct Measurement {
  std::vector<double> agent_latency{};     ///< seconds, for each batch
  std::vector<double> agent_throughput{};  ///< requests of the batch / its latency
  std::vector<double> observer_latency{};  ///< seconds, for each request
};

/// A metric by its name in the report. Latencies are in seconds.
using NamedPercentiles = std::pair<std::string, Percentiles>;

/// Returns "agent latency (seconds)", "agent throughput", "observer latency (seconds)" and "observer throughput" in
/// this order, which are the names that the original benchmark writes.
std::vector<NamedPercentiles> summarize(const Measurement& measured);

}  // namespace caftan::rl_bench
