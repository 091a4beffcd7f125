/// What the learner measures of itself, and the lines that it reports. Scripts read these: tests hold their form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "caftan/base/clock.hpp"

namespace caftan::actor_critic {

/// What the learner's time went into, and how old the weights were that played. A value.
struct Meter {
  base::TimePoint started{};
  base::Duration idle{};  ///< in which it waited for trajectories
  std::int64_t first_frames = 0;
  double lag_sum = 0;    ///< over the updates of this run
  double queue_sum = 0;  ///< of trajectories that waited when an update began
  std::int64_t updates = 0;
};

/// Where a training stands.
struct Standing {
  std::int64_t frames = 0;
  std::int64_t max_frames = 0;
  std::optional<double> evaluation{};  ///< mean return
  std::optional<double> best{};
  double frames_per_s = 0;
  double lag = 0;      ///< mean, updates
  double queue = 0;    ///< mean, trajectories
  double idle = 0;     ///< 0..1
  double seconds = 0;  ///< of this run
  std::int64_t updates = 0;
  std::size_t actors = 0;
};

/// Returns "frames 204,800 of 1,000,000  evaluation 312.5, best 410.0  98.1 k frames/s, lag 1.2, idle 8 %".
std::string frames_line(const Standing& standing);
/// Returns "evaluation: mean 487.3 of 100 episodes, min 301, at 204,800 frames, 2.1 s".
std::string evaluation_line(double mean, double least, std::size_t episodes, std::int64_t frames, double seconds);
/// Returns "trained: 204,800 frames, 100 updates, 2.1 s, 98.1 k frames/s, policy lag 1.2, queue 0.8, learner idle 8 %".
std::string trained_line(const Standing& standing);
std::string resumed_line(std::int64_t frames, const std::string& path);
/// Returns "the best evaluation's mean return is 120.5, the goal is 475".
std::string missed_text(double best, double goal);

/// Returns "1,234,567".
std::string with_commas(std::int64_t number);

}  // namespace caftan::actor_critic
