/// `RepeatedLines`: limits log lines about one thing. The first is written at once, then one per period with the number
/// of lines that were left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "caftan/base/mutex.hpp"

namespace caftan::base {

/// The owner of this object keeps the time: it calls `end_period` one period after `add` or `end_period` said so.
/// Threads: any.
class RepeatedLines {
 public:
  /// Returns whether to write a line about `key` now. If the line is to be written, a period begins; if not, the line
  /// is counted.
  bool add(std::string_view key) {
    const LockGuard lock(mutex_);
    const auto [place, is_first] = counts_.try_emplace(std::string(key), 0);
    if (!is_first) ++place->second;
    return is_first;
  }

  /// Returns how many lines were counted in the period that is over. If there were such lines, another period begins.
  std::size_t end_period(const std::string& key) {
    const LockGuard lock(mutex_);
    const auto found = counts_.find(key);
    if (found == counts_.end()) return 0;
    const std::size_t counted = std::exchange(found->second, 0);
    if (counted == 0) counts_.erase(found);
    return counted;
  }

  /// Returns `line` with `count` in the place of its last '#'. Precondition: it has one.
  static std::string with_count(std::string line, std::size_t count) {
    return line.replace(line.rfind('#'), 1, std::to_string(count));
  }

  /// Ends all periods; returns the keys and the numbers of lines that were counted.
  std::vector<std::pair<std::string, std::size_t>> end_all() {
    const LockGuard lock(mutex_);
    std::vector<std::pair<std::string, std::size_t>> counted;
    for (const auto& [key, count] : counts_) {
      if (count > 0) counted.emplace_back(key, count);
    }
    counts_.clear();
    return counted;
  }

 private:
  Mutex mutex_;
  std::unordered_map<std::string, std::size_t> counts_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::base
