/// What one episode gave, in flat arrays that travel as they are and become tensors without a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace caftan::rl {

/// T steps: observations [T, observation_size] before each action, actions [T], rewards [T] after each action.
struct Trajectory {
  std::vector<float> observations;
  std::vector<std::int32_t> actions;
  std::vector<double> rewards;

  /// Returns T.
  std::size_t steps() const noexcept { return rewards.size(); }
  /// Returns the undiscounted sum of the rewards, added from the first to the last.
  double total_reward() const noexcept;
  /// Appends an observation and the action on it; `append_reward` follows when the reward is known.
  void append(std::span<const float> observation, std::int32_t action);
  /// Appends the reward of the last action.
  void append_reward(double reward) { rewards.push_back(reward); }
  /// Removes all steps and keeps the memory.
  void clear() noexcept;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& observations& actions& rewards;
  }
};

}  // namespace caftan::rl
