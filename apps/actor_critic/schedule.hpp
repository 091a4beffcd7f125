/// When a learner evaluates and makes checkpoints. A plain value.
#pragma once

#include <cstdint>

#include "actor_critic/config.hpp"

namespace caftan::actor_critic {

class Schedule {
 public:
  /// What an update has made due.
  struct Due {
    bool evaluation = false;
    bool checkpoint = false;
    bool end = false;  ///< max_frames are there
  };

  /// @param frames  at which the training begins or goes on
  Schedule(const LearnerConfig& config, std::int64_t frames)
      : evaluate_every_(config.evaluate_every),
        checkpoint_every_(config.checkpoint.every),
        max_frames_(config.max_frames),
        frames_(frames) {}

  /// Returns what is due since the last call, now that the training stands at `frames`: whenever a multiple of the
  /// interval was passed, and at the end.
  Due after(std::int64_t frames) noexcept {
    const bool end = frames >= max_frames_;
    const Due due{
        .evaluation = end || frames / evaluate_every_ > frames_ / evaluate_every_,
        .checkpoint = checkpoint_every_ > 0 && (end || frames / checkpoint_every_ > frames_ / checkpoint_every_),
        .end = end};
    frames_ = frames;
    return due;
  }

 private:
  std::int64_t evaluate_every_;
  std::int64_t checkpoint_every_;
  std::int64_t max_frames_;
  std::int64_t frames_;
};

}  // namespace caftan::actor_critic
