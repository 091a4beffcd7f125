#include "caftan/svg/internal/ticks.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace caftan::svg {
namespace {

/// `padded` takes a range for one value if its width over its largest value is below this.
constexpr double kNarrowest = 1e-12;
constexpr double kTiny = 1e-290;
constexpr int kFirstScientific = 6;  ///< labels have exponents from this power of ten on
constexpr int kLastFixed = -4;

int exponent_of(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

/// Returns 1, 2, 5 or 10 times a power of ten: the smallest that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10.0, exponent_of(least));
  const double share = least / power;
  return power * (share <= 1 + 1e-9 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

std::string fixed(double value, int decimals) {
  std::array<char, 400> buffer{};
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  return {buffer.data(), result.ptr};
}

/// Returns "1.5e6" with as many digits as distinguish multiples of 10^step.
std::string scientific(double value, int step) {
  if (value == 0) return "0";
  int exponent = exponent_of(std::abs(value));
  std::string mantissa = fixed(value / std::pow(10.0, exponent), std::clamp(exponent - step, 0, 15));
  if (mantissa.starts_with("10") || mantissa.starts_with("-10")) {  // 9.99 was rounded
    ++exponent;
    mantissa = fixed(value / std::pow(10.0, exponent), std::clamp(exponent - step, 0, 15));
  }
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.ends_with('.')) mantissa.pop_back();
  }
  return mantissa + "e" + std::to_string(exponent);
}

std::string power_label(int exponent) {
  if (exponent < -3 || exponent > 4) return "1e" + std::to_string(exponent);
  return fixed(std::pow(10.0, exponent), std::max(0, -exponent));
}

}  // namespace

Range padded(Range range, double share) {
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  const double width = range.high - range.low;
  if (width > largest * kNarrowest && width > kTiny) {
    return {range.low - width * share, range.high + width * share};
  }
  const double middle = range.low / 2 + range.high / 2;
  const double half = largest > kTiny ? largest * 0.05 : 0.5;
  return {middle - half, middle + half};
}

std::vector<Tick> linear_ticks(Range range, int count) {
  const double step = round_step((range.high - range.low) / count);
  const int power = exponent_of(step);
  const int largest = exponent_of(std::max(std::abs(range.low), std::abs(range.high)));
  const bool is_fixed = largest < kFirstScientific && power >= kLastFixed;
  std::vector<Tick> ticks;
  const double last = std::floor(range.high / step + 1e-9);
  for (double number = std::ceil(range.low / step - 1e-9); number <= last; ++number) {
    const double value = number * step + 0.0;  // + 0.0: there is no -0
    ticks.push_back({value, is_fixed ? fixed(value, std::max(0, -power)) : scientific(value, power)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(Range range, int count) {
  const int first = static_cast<int>(std::ceil(std::log10(range.low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(range.high) + 1e-9));
  std::vector<Tick> ticks;
  if (last <= first) {
    ticks = linear_ticks(range, count);
    std::erase_if(ticks, [](const Tick& tick) { return !(tick.value > 0); });
    return ticks;
  }
  const int stride = std::max(1, (last - first + count) / count);
  for (int power = first; power <= last; power += stride) ticks.push_back({std::pow(10.0, power), power_label(power)});
  return ticks;
}

}  // namespace caftan::svg
