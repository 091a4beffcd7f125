/// Times as messages to people have them.
#pragma once

#include <cstdint>
#include <string>

#include "caftan/base/clock.hpp"

namespace caftan::actors {

/// Returns "3 s" for whole seconds, else milliseconds: "1500 ms".
inline std::string in_words(base::Duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  constexpr std::int64_t kWholeSeconds = 1000;
  if (ms % kWholeSeconds == 0 && ms > 0) return std::to_string(ms / kWholeSeconds) + " s";
  return std::to_string(ms) + " ms";
}

}  // namespace caftan::actors
