#include "caftan/wire/checkpoint_folder.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace caftan::wire {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

/// Returns the step that a path is named after, -1 for another name.
std::int64_t step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::size_t kMostDigits = 18;  // any such number fits
  if (!name.starts_with(kStepPrefix) || name.size() == kStepPrefix.size() ||
      name.size() > kStepPrefix.size() + kMostDigits) {
    return -1;
  }
  std::int64_t step = 0;
  for (const char digit : name.substr(kStepPrefix.size())) {
    if (digit < '0' || digit > '9') return -1;
    step = step * 10 + (digit - '0');
  }
  return step;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%s%06lld", kStepPrefix.data(), static_cast<long long>(step));
  return name.data();
}

std::vector<fs::path> find_checkpoints(const fs::path& folder,
                                       const std::function<bool(const fs::path&)>& is_checkpoint) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (step_of(entry->path()) >= 0 && is_checkpoint(entry->path())) found.push_back(entry->path());
  }
  std::ranges::sort(found, {}, step_of);
  return found;
}

}  // namespace caftan::wire
