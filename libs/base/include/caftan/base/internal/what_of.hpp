/// The text of an exception of other code.
#pragma once

#include <exception>

namespace caftan::base {

/// As what(), which may be null.
inline const char* what_of(const std::exception& failure) noexcept {
  const char* const text = failure.what();
  return text ? text : "an exception without a text";
}

}  // namespace caftan::base
