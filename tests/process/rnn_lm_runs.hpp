/// Runs of the language model in small.
#pragma once

#include <string>
#include <vector>

#include "programs.hpp"

namespace caftan::test {

inline const std::string kFile = kConfigs + "/rnn_lm.test.toml";

/// Returns the first line that starts so.
inline std::string line_with(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
}

inline std::vector<std::string> run_file(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"run", kFile});
  return overrides;
}

}  // namespace caftan::test
