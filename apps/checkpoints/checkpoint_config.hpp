/// The settings of checkpoints: `[checkpoint]` and `resume` of a role's config. Without libtorch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>

namespace caftan::checkpoints {

struct CheckpointConfig {
  std::int64_t every = 0;
  std::int64_t keep = 2;

  /// Returns whether a checkpoint follows a step. @param last  of the training
  bool is_due(std::int64_t step, std::int64_t last) const noexcept {
    return every > 0 && (step == last || step % every == 0);
  }

  static void settings(auto& s, CheckpointConfig& c) {
    s("every", c.every, "steps between checkpoints, also one at the end; 0 = none").at_least(0).unit("steps");
    s("keep", c.keep, "newest ones that stay").at_least(1);
  }
};

/// Declares the key `resume` of a role's config.
void resume_setting(auto& s, std::optional<std::filesystem::path>& resume) {
  s("resume", resume, "go on from this checkpoint, or from the newest one of this run's folder")
      .default_text("none: start anew");
}

/// Returns the step at which all trainers have to wait next: the next multiple of one of these, or the last step.
/// @param intervals  steps; 0 = none
inline std::int64_t next_stop(std::int64_t step, std::int64_t last, std::initializer_list<std::int64_t> intervals) {
  std::int64_t stop = last;
  for (const std::int64_t every : intervals) {
    if (every > 0) stop = std::min(stop, (step / every + 1) * every);
  }
  return stop;
}

}  // namespace caftan::checkpoints
