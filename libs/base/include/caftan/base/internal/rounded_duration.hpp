/// Measured times, as messages have them.
#pragma once

#include <chrono>
#include <string>

#include "caftan/base/clock.hpp"
#include "caftan/base/settings_io.hpp"

namespace caftan::base {

/// Returns the time rounded up to whole milliseconds: "250ms", "3s".
inline std::string format_rounded(Duration time) {
  return format_duration(Duration(std::chrono::ceil<std::chrono::milliseconds>(time)).count());
}

}  // namespace caftan::base
