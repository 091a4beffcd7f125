// How single values are written in files: durations, sizes, numbers, strings.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>

#include "caftan/base/settings_io.hpp"

namespace caftan {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t size;
};
constexpr std::array<Unit, 6> kDurations{{{"h", 3'600'000'000'000},
                                          {"min", 60'000'000'000},
                                          {"s", 1'000'000'000},
                                          {"ms", 1'000'000},
                                          {"us", 1'000},
                                          {"ns", 1}}};
constexpr std::array<Unit, 5> kSizes{
    {{"TiB", 1LL << 40}, {"GiB", 1LL << 30}, {"MiB", 1LL << 20}, {"KiB", 1LL << 10}, {"B", 1}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads digits, optionally a point and digits, and a unit.
/// Errors: invalid_config (with the text `wanted`: the text has another form, or the result is not whole),
/// limit_exceeded (negative or too large).
template <std::size_t N>
Result<std::int64_t> parse_units(std::string_view text, const std::array<Unit, N>& units, const char* wanted) {
  const Error other_form(Errc::invalid_config, wanted);
  const Error out_of_range(Errc::limit_exceeded, "negative or too large");
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto* end_of_number = std::ranges::find_if_not(text, [](char c) { return is_digit(c) || c == '.'; });
  const std::string_view number(text.begin(), end_of_number);
  const std::string_view name(end_of_number, text.end());
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end() || number.empty() || !is_digit(number.front()) || !is_digit(number.back())) {
    return other_form;
  }
  constexpr auto kMax = static_cast<__int128_t>(std::numeric_limits<std::int64_t>::max());
  __int128_t digits = 0;
  __int128_t scale = 1;
  bool fraction = false;
  bool too_large = false;
  for (const char c : number) {
    if (c == '.') {
      if (fraction) return other_form;
      fraction = true;
      continue;
    }
    if (too_large) continue;
    digits = digits * 10 + (c - '0');
    if (fraction) scale *= 10;
    too_large = digits > kMax;
    if (scale > kMax) return other_form;
  }
  const __int128_t value = digits * unit->size;
  if (negative || too_large) return out_of_range;
  if (value % scale != 0) return other_form;
  if (value / scale > kMax) return out_of_range;
  return static_cast<std::int64_t>(value / scale);
}

template <std::size_t N>
std::string format_units(std::int64_t value, const std::array<Unit, N>& units, std::string_view zero) {
  if (value == 0) return std::string(zero);
  const auto unit = std::ranges::find_if(units, [&](const Unit& candidate) { return value % candidate.size == 0; });
  return std::to_string(value / unit->size) + std::string(unit->name);
}

}  // namespace

std::string format_duration(std::int64_t nanoseconds) { return format_units(nanoseconds, kDurations, "0s"); }
std::string format_bytes(std::int64_t bytes) { return format_units(bytes, kSizes, "0B"); }

Result<std::int64_t> parse_duration(std::string_view text) {
  return parse_units(text, kDurations, "not a duration with a unit (ns, us, ms, s, min, h)");
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  return parse_units(text, kSizes, "not a size with a unit (B, KiB, MiB, GiB, TiB)");
}

std::string format_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string format_fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  const std::string_view shown = text.data();
  // A small negative number is shown as 0, not as -0.
  const bool is_zero = shown.find_first_not_of("-0.") == std::string_view::npos;
  return std::string(shown.substr(is_zero && shown.starts_with('-') ? 1 : 0));
}

std::string format_digits(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

std::string printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return result;
}

std::string quote_toml(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += "\\u00";
      result += kHex[byte >> 4];
      result += kHex[byte & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace caftan
