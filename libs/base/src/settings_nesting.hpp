/// A limit on nesting that is checked before the parser sees the text. The parser limits values to 256 levels, but not
/// dotted keys: with `a.a.a. ...` it would recurse until the stack ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "caftan/base/settings_diagnostics.hpp"

namespace caftan {

inline constexpr int kMaxKeyParts = 16;
/// The most levels of tables and lists inside each other, each part of a dotted key counted. Above the parser's own
/// limit.
inline constexpr int kMaxLevels = 512;

struct TooDeep {
  SettingsPlace place;
  std::string reason;
};

/// Returns the first place that is nested too deep, if there is one.
std::optional<TooDeep> find_too_deep(std::string_view text);

}  // namespace caftan
