/// `OptionCheck`: finds the first option that is out of its range, and says so alike for algorithms and schedules.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "caftan/base/result.hpp"

namespace caftan::optim {

class OptionCheck {
 public:
  /// @param owner  of the options: "SGD"
  explicit OptionCheck(std::string_view owner) : owner_(owner) {}

  /// Notes the error "SGD: lr is -1, it must be >= 0" unless `fits`. The error that was noted first stays.
  OptionCheck& require(bool fits, std::string_view option, double value, std::string_view range);
  OptionCheck& finite(std::string_view option, double value);
  OptionCheck& not_negative(std::string_view option, double value);
  OptionCheck& within_one(std::string_view option, double value);
  OptionCheck& below_one(std::string_view option, double value);

  /// Errors: bad_arguments.
  Result<void> result() const;
  /// Throws the error that `result` returns, if any.
  void or_throw() const { result().value(); }

 private:
  std::string owner_;
  std::optional<Error> first_;
};

/// Returns the shortest text of a number that reads back as the same.
std::string text_of(double value);

}  // namespace caftan::optim
