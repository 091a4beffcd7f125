#include "caftan/launchers/internal/environment.hpp"

#include <charconv>
#include <string_view>

#include "caftan/base/settings_io.hpp"

namespace caftan::launchers {

Environment Environment::of(const char* const* variables) {
  std::map<std::string, std::string, std::less<>> found;
  for (; *variables; ++variables) {
    const std::string_view variable = *variables;
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    found.emplace(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return Environment(std::move(found));
}

std::optional<std::string> Environment::find(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

Result<int> Environment::number(std::string_view name, int least, int most) const {
  const std::optional<std::string> text = find(name);
  if (!text) return Error(Errc::invalid_config, "the variable " + std::string(name) + " is not set");
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= least && value <= most) return value;
  return Error(Errc::invalid_config, "the variable " + std::string(name) + " must be a number from " +
                                         std::to_string(least) + " to " + std::to_string(most) + ", is \"" +
                                         printable(*text) + "\"");
}

}  // namespace caftan::launchers
