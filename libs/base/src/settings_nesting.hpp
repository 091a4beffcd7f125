/// A bound on nesting, checked before the parser sees the text: it limits values to 256 levels, but not dotted keys,
/// and `a.a.a. ...` makes it recurse until the stack ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "caftan/base/settings_diagnostics.hpp"

namespace caftan {

inline constexpr int kMaxKeyParts = 16;
/// Tables and lists inside each other, each part of a dotted key counted. Above the parser's own limit.
inline constexpr int kMaxLevels = 512;

struct TooDeep {
  SettingsPlace place;
  std::string reason;
};

/// Returns the first place that goes too deep, if there is one.
std::optional<TooDeep> find_too_deep(std::string_view text);

}  // namespace caftan
