/// The lines that a training reports. Scripts read them: tests hold their form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace caftan::cartpole_batch {

/// Where a training stands.
struct Standing {
  std::int64_t episode = 0;
  std::int64_t episodes = 0;
  double mean_reward = 0;  ///< of the newest episode
  double running_reward = 0;
  std::int64_t env_steps = 0;
  std::int64_t sub_episodes = 0;
  double seconds = 0;          ///< since the first episode
  double mean_batch_size = 0;  ///< since the first episode; 0 = requests are not collected
  std::size_t observers = 1;   ///< that are left
};

/// Returns "episode 3 of 10  reward 24.1, running reward 21.0, mean batch size 9.8  15,000 steps, 40.2 k steps/s".
std::string episode_line(const Standing& standing);

/// Returns "played: 10 episodes with 10 observers, running reward 61.3, 1,204 sub-episodes, 50,000 env steps, 1.2 s".
std::string played_line(const Standing& standing);

}  // namespace caftan::cartpole_batch
