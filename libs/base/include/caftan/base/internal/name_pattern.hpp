/// Registered names of functions and methods, and patterns of them: a name, or the beginning of several and a `*`.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace caftan::base {

/// Returns whether `name` is what the pattern says: the same name, or one that begins with what stands before its `*`.
constexpr bool matches(std::string_view pattern, std::string_view name) noexcept {
  if (!pattern.ends_with('*')) return pattern == name;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

/// Returns whether one of the patterns matches `name`.
inline bool matches_any(const std::vector<std::string>& patterns, std::string_view name) noexcept {
  return std::ranges::any_of(patterns, [name](const std::string& pattern) { return matches(pattern, name); });
}

/// Returns whether the registered name is that of a method of the role type: "counter.add" of "counter".
constexpr bool is_method_of(std::string_view type, std::string_view name) noexcept {
  return name.size() > type.size() && name.starts_with(type) && name[type.size()] == '.';
}

}  // namespace caftan::base
