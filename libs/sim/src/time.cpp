#include "caftan/sim/time.hpp"

#include <cmath>

#include "caftan/base/settings_io.hpp"

namespace caftan::sim {

Result<Time> time_of(double units) {
  const double ticks = units * static_cast<double>(kTicksPerUnit);
  // 2^63 as a double; all doubles below fit.
  if (ticks >= 0 && ticks < 0x1p63) return Time{static_cast<std::int64_t>(std::floor(ticks + 0.5))};
  const char* const what = std::isnan(units) ? "is not a number" : units < 0 ? "is negative" : "is beyond 2^63 ticks";
  return Error(Errc::bad_arguments, "a time of " + format_number(units) + " units " + what);
}

std::string to_string(Time time) {
  if (time == kNever) return "never";
  const bool is_negative = time.ticks < 0;
  const std::uint64_t ticks =
      is_negative ? 0 - static_cast<std::uint64_t>(time.ticks) : static_cast<std::uint64_t>(time.ticks);
  constexpr auto kUnit = static_cast<std::uint64_t>(kTicksPerUnit);
  std::string text = (is_negative ? "-" : "") + std::to_string(ticks / kUnit);
  std::string part = std::to_string(kUnit + ticks % kUnit).substr(1);
  while (!part.empty() && part.back() == '0') part.pop_back();
  return part.empty() ? text : text + "." + part;
}

}  // namespace caftan::sim
