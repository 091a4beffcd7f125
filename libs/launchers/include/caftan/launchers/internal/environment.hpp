/// `Environment`: the variables of a process, as a value, so that a test can write them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "caftan/base/result.hpp"

namespace caftan::launchers {

class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string, std::less<>> variables) : variables_(std::move(variables)) {}
  /// @param variables  NAME=VALUE each, ended by null: as `environ`
  static Environment of(const char* const* variables);

  /// Returns the value; nothing if the variable is missing or empty.
  std::optional<std::string> find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name).has_value(); }
  /// Returns a whole number. Errors: invalid_config (missing, no number, or not in the range; names the variable).
  Result<int> number(std::string_view name, int least, int most) const;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace caftan::launchers
