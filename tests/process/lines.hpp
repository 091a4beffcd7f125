/// Lines of what a command has printed.
#pragma once

#include <string>

namespace caftan::test {

/// Returns the rest of the first line that contains `start`, from there on; empty if there is none.
inline std::string line_with(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
}

}  // namespace caftan::test
