/// Runs of the language model in small.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "programs.hpp"

namespace caftan::test {

inline const std::string kFile = kConfigs + "/rnn_lm.test.toml";

/// Returns the first line that contains `start`, from `start` to the end of the line.
inline std::string line_with(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
}

inline std::vector<std::string> run_file(std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"run", kFile});
  return overrides;
}

namespace fs = std::filesystem;

/// Returns the CPU's model as Linux names it.
inline std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

/// Returns the first file, in the order of the steps, that is not the same in both folders of checkpoints.
inline std::string first_difference(const fs::path& one, const fs::path& other) {
  const auto read = [](const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  // In the order of the steps: a step with fewer digits is earlier.
  std::vector<std::pair<std::size_t, fs::path>> files;
  for (const auto& file : fs::recursive_directory_iterator(one)) {
    const fs::path name = fs::relative(file.path(), one);
    if (file.is_regular_file()) files.emplace_back(name.begin()->string().size(), name);
  }
  std::sort(files.begin(), files.end());
  for (const auto& [digits, name] : files) {
    if (read(one / name) != read(other / name)) return name.string();
  }
  return "none of " + std::to_string(files.size()) + " files";
}

/// Moves run folders out of a test's folder, which is removed at its end. Returns where they are.
inline fs::path keep(const std::vector<fs::path>& runs) {
  std::string pattern = (fs::temp_directory_path() / "caftan-odd-run-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) return "no folder: mkdtemp failed";
  for (const fs::path& run : runs) fs::copy(run, fs::path(pattern) / run.filename(), fs::copy_options::recursive);
  return pattern;
}

}  // namespace caftan::test
