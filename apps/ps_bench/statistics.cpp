#include "ps_bench/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace caftan::ps_bench {

Statistics statistics_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const auto [min, max] = std::ranges::minmax(values);
  Statistics found{.count = values.size(),
                   .min = min,
                   .max = max,
                   .mean = std::accumulate(values.begin(), values.end(), 0.0) / count};
  if (values.size() < 2) return found;
  double squares = 0;
  for (const double value : values) squares += (value - found.mean) * (value - found.mean);
  found.variance = squares / (count - 1);
  found.stdev = std::sqrt(*found.variance);
  return found;
}

Times join(const std::vector<Times>& all) {
  Times joined;
  for (const Times& times : all) {
    for (const auto& [name, values] : times) {
      std::vector<double>& of_name = joined[name];
      of_name.insert(of_name.end(), values.begin(), values.end());
    }
  }
  return joined;
}

}  // namespace caftan::ps_bench
