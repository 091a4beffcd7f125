/// What one episode gave, in flat arrays that travel as they are and become tensors without a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "caftan/rl/environment.hpp"

namespace caftan::rl {

/// T steps: observations [T, observation_size] before each action, actions, rewards [T] after each action, and how the
/// last step ended: an episode that is truncated, or was cut, goes on behind `last_observation`, one that is terminated
/// does not.
struct Trajectory {
  std::vector<float> observations{};
  std::vector<std::int32_t> actions{};      ///< [T]; empty where actions are continuous
  std::vector<float> continuous_actions{};  ///< [T, action_size]; empty where actions are discrete
  std::vector<double> rewards{};
  std::vector<float> last_observation{};  ///< [observation_size], after the last action; empty where it is not kept
  bool terminated = false;                ///< the task has ended: nothing follows
  bool truncated = false;                 ///< the time limit has ended the episode

  /// Returns T.
  std::size_t steps() const noexcept { return rewards.size(); }
  /// Returns the undiscounted sum of the rewards, added from the first to the last.
  double total_reward() const noexcept;
  /// Returns whether what follows the last step counts for its value: the task has not ended there.
  bool goes_on() const noexcept { return !terminated; }
  /// Appends an observation and the action on it; `append_reward` or `append_outcome` follows.
  void append(std::span<const float> observation, std::int32_t action);
  /// Appends an observation and the continuous action on it; `append_reward` or `append_outcome` follows.
  void append(std::span<const float> observation, std::span<const float> action);
  /// Appends the reward of the last action, where nothing else of its outcome is needed.
  void append_reward(double reward) { rewards.push_back(reward); }
  /// Appends what the last action gave: the reward, the end of the episode, and the observation as the last one.
  void append_outcome(const Transition& transition);
  /// Removes all steps and keeps the memory.
  void clear() noexcept;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& observations& actions& continuous_actions& rewards& last_observation& terminated& truncated;
  }
};

}  // namespace caftan::rl
