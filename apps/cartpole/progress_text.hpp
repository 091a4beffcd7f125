/// The lines a training reports. Scripts read them: tests hold their form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cartpole_learning/report_text.hpp"

namespace caftan::cartpole {

/// Where a training stands.
struct Standing {
  std::int64_t episode = 0;
  double running_reward = 0;
  double solved_at = 0;
  std::int64_t env_steps = 0;
  std::int64_t calls = 0;  ///< between agent and observers
  double seconds = 0;      ///< since the first episode
  /// Median time of the calls to the agent in the newest episode, microseconds; 0 = there are none.
  double call_p50_us = 0;
  std::size_t observers = 1;
};

/// Returns "episode 190  running reward 300.2 of 475  34,120 steps, 21.4 k steps/s, 42.9 k calls/s, p50 19 us"; with
/// several observers "running reward 300.2 of 475 (worst of 4 observers)".
std::string episode_line(const Standing& standing);

/// Returns "solved: running reward 475.3 > 475 after 287 episodes, 71,204 env steps, 3.9 s".
std::string solved_line(const Standing& standing);

/// Returns why the training failed. The text does not have the word "solved", for which scripts search.
std::string exhausted_text(const Standing& standing);

/// Returns "greedy evaluation: 100 episodes, mean 500.0, min 500". Precondition: not empty.
std::string evaluation_line(std::span<const double> rewards);

}  // namespace caftan::cartpole
