#include "caftan/app/internal/student.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace caftan::app {
namespace {

/// Returns the probability of -t..t with t = sqrt(degrees) * tan(angle): the finite sums of Abramowitz and
/// Stegun, 26.7.3 and 26.7.4.
double probability_within(double angle, std::size_t degrees) {
  const double cosine = std::cos(angle);
  const bool is_odd = degrees % 2 == 1;
  double term = is_odd ? cosine : 1;
  double sum = degrees == 1 ? 0 : term;
  for (std::size_t power = is_odd ? 3 : 2; power + 2 <= degrees; power += 2) {
    term *= cosine * cosine * static_cast<double>(power - 1) / static_cast<double>(power);
    sum += term;
  }
  const double within = std::sin(angle) * sum;
  return is_odd ? (angle + within) * 2 / std::numbers::pi : within;
}

}  // namespace

double student_quantile_95(std::size_t degrees) {
  double low = 0;
  double high = std::numbers::pi / 2;
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;  // neighbours
    (probability_within(middle, degrees) < 0.95 ? low : high) = middle;
  }
  return std::sqrt(static_cast<double>(degrees)) * std::tan(low);
}

MeanEstimate estimate_mean(std::span<const double> values) {
  MeanEstimate estimate{.count = values.size()};
  if (values.empty()) return estimate;
  const auto count = static_cast<double>(values.size());
  estimate.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2) return estimate;
  if (std::ranges::all_of(values, [&](double value) { return value == values.front(); })) {
    // All values are equal: the sum divided by their number could differ by a rounding error.
    estimate.mean = values.front();
    estimate.half = 0;
    return estimate;
  }
  double squares = 0;
  for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  estimate.half = student_quantile_95(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return estimate;
}

}  // namespace caftan::app
