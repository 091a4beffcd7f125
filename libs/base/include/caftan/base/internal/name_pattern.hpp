/// Patterns of registered names: a name, or the beginning of several and a `*`.
#pragma once

#include <string_view>

namespace caftan::base {

/// Returns whether `name` is what the pattern says: the same name, or one that begins with what stands before its `*`.
constexpr bool matches(std::string_view pattern, std::string_view name) noexcept {
  if (!pattern.ends_with('*')) return pattern == name;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

}  // namespace caftan::base
