#include "option_check.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace caftan::optim {

std::string text_of(double value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

OptionCheck& OptionCheck::require(bool fits, std::string_view option, double value, std::string_view range) {
  if (!fits && !first_) {
    first_ = Error(Errc::bad_arguments, owner_ + ": " + std::string(option) + " is " + text_of(value) +
                                            ", it must be " + std::string(range));
  }
  return *this;
}

OptionCheck& OptionCheck::finite(std::string_view option, double value) {
  return require(std::isfinite(value), option, value, "a finite number");
}

OptionCheck& OptionCheck::not_negative(std::string_view option, double value) {
  return require(std::isfinite(value) && value >= 0, option, value, ">= 0");
}

OptionCheck& OptionCheck::within_one(std::string_view option, double value) {
  return require(value >= 0 && value <= 1, option, value, "in [0, 1]");
}

OptionCheck& OptionCheck::below_one(std::string_view option, double value) {
  return require(value >= 0 && value < 1, option, value, "in [0, 1)");
}

Result<void> OptionCheck::result() const {
  if (first_) return *first_;
  return {};
}

}  // namespace caftan::optim
