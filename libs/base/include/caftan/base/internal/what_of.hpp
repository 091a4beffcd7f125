/// The text of an exception that other libraries throw.
#pragma once

#include <exception>

namespace caftan::base {

/// Returns what(), or a text in its place where what() is null.
inline const char* what_of(const std::exception& failure) noexcept {
  const char* const text = failure.what();
  return text ? text : "an exception without a text";
}

}  // namespace caftan::base
