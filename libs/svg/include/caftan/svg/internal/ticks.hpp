/// The marks of an axis: round numbers within its range, with their labels.
#pragma once

#include <string>
#include <vector>

namespace caftan::svg {

/// Values beyond +-kLargest are gaps: ranges stay finite numbers.
inline constexpr double kLargest = 1e300;

struct Tick {
  double value = 0;
  std::string label{};
};

struct Range {
  double low = 0;
  double high = 0;
};

/// Returns the range with `share` of its width more at both ends; around a single value it is 10 % of that wide, around
/// 0 one wide. Precondition: low <= high, both within +-kLargest.
Range padded(Range range, double share);

/// Returns ticks at multiples of 1, 2 or 5 times a power of ten within the range: at least two, at most count + 1.
/// @param range  as `padded` returns it
/// @param count  >= 5
std::vector<Tick> linear_ticks(Range range, int count);

/// Returns ticks at powers of ten within the range, at most count + 1; linear ones where there are fewer than two.
/// Precondition: 0 < low < high.
std::vector<Tick> log_ticks(Range range, int count);

}  // namespace caftan::svg
