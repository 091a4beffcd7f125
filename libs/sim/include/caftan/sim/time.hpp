/// Virtual time as a whole number of ticks, so that sums of steps are exact. Start with `Time`; `time_of` converts
/// units.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::sim {

/// How many ticks one unit of a model has.
inline constexpr std::int64_t kTicksPerUnit = 1'000'000'000;

/// A moment, or a span, of virtual time.
struct Time {
  std::int64_t ticks = 0;
  constexpr auto operator<=>(const Time&) const = default;
  /// Returns the nearest number of units.
  constexpr double units() const noexcept { return static_cast<double>(ticks) / static_cast<double>(kTicksPerUnit); }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& ticks;
  }
};

/// Later than all moments: no event has this time.
inline constexpr Time kNever{std::numeric_limits<std::int64_t>::max()};

/// Returns the moment `by` after `from`; kNever if that lies beyond all ticks. Precondition: neither is negative.
constexpr Time later(Time from, Time by) noexcept {
  return by.ticks > kNever.ticks - from.ticks ? kNever : Time{from.ticks + by.ticks};
}

/// Returns the time of that many units, rounded to the nearest tick.
/// Errors: bad_arguments (negative, not a number, 2^63 - 1 ticks or more).
Result<Time> time_of(double units);

/// Returns the units for people, with all digits that ticks have: "1.5", "0.000000001", "never".
std::string to_string(Time time);

}  // namespace caftan::sim
