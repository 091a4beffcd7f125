/// Student's 95 % interval of a mean: what a table of repeated runs shows.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace caftan::app {

/// Returns q so that a variable of Student's distribution lies between -q and q with probability 0.95: 12.706 for one
/// degree of freedom, 1.960 for very many. Takes time in proportion to the degrees. Precondition: degrees >= 1.
double student_quantile_95(std::size_t degrees);

struct MeanEstimate {
  std::size_t count = 0;
  double mean = 0;
  /// The mean lies within mean +- half with 95 % confidence, if the values are independent and normal. Empty for fewer
  /// than two values.
  std::optional<double> half{};
};

/// Returns count 0 for no values. If a value is not finite, mean and half are not finite either.
MeanEstimate estimate_mean(std::span<const double> values);

}  // namespace caftan::app
