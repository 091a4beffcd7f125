#include "caftan/svg/internal/smoothing.hpp"

#include <algorithm>
#include <cmath>

namespace caftan::svg {

std::vector<double> smoothed(std::span<const double> values, double weight) {
  std::vector<double> result(values.begin(), values.end());
  if (std::ranges::all_of(values, [&](double value) { return value == values.front(); })) return result;
  double average = 0;
  double left = 1;  // the share of the average that its start, 0, still has
  for (double& value : result) {
    if (!std::isfinite(value)) continue;
    average = weight * average + (1 - weight) * value;
    left *= weight;
    value = average / (1 - left);
  }
  return result;
}

}  // namespace caftan::svg
