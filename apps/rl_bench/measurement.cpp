#include "rl_bench/measurement.hpp"

#include <algorithm>
#include <cmath>

namespace caftan::rl_bench {

double percentile(const std::vector<double>& sorted, double percent) {
  const double place = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Percentiles percentiles_of(std::vector<double> values) {
  Percentiles all{};
  if (values.empty()) return all;
  std::ranges::sort(values);
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) all[i] = percentile(values, kPercentiles[i]);
  return all;
}

std::vector<NamedPercentiles> summarize(const Measurement& measured) {
  std::vector<double> observer_throughput;
  for (const double seconds : measured.observer_latency) observer_throughput.push_back(1 / seconds);
  return {{"agent latency (seconds)", percentiles_of(measured.agent_latency)},
          {"agent throughput", percentiles_of(measured.agent_throughput)},
          {"observer latency (seconds)", percentiles_of(measured.observer_latency)},
          {"observer throughput", percentiles_of(std::move(observer_throughput))}};
}

}  // namespace caftan::rl_bench
