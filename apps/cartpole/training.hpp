/// The agent's whole state apart from calls: policy, learner, the episode in progress and the fingerprint. A role
/// drives it with calls from observers, `train_locally` without any. Start with `begin_episode`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/random.hpp"
#include "cartpole_learning/episode.hpp"
#include "cartpole_learning/policy.hpp"
#include "config.hpp"
#include "fingerprint/fingerprint.hpp"
#include "learner.hpp"

namespace caftan::cartpole {

struct TrainingOptions {
  AgentConfig config;
  std::size_t observers = 1;
  std::uint64_t seed = 0;      ///< seed of parameters, masks, actions and evaluation
  double solved_at = 0;        ///< a training is solved when its running reward is above this
  bool deterministic = false;  ///< the training gives the same bits whatever torch's number of threads is
};

/// Every random number comes from a stream of its own (observer, episode), so nothing depends on the order in which
/// observers ask. The number of processes and the protocol do not change the fingerprint.
/// Threads: one at a time.
class Training {
 public:
  /// Errors: invalid_config (fewer steps an episode than observers).
  static Result<Training> make(const TrainingOptions& options);

  /// Returns the env steps one observer may take in one episode.
  std::int64_t step_budget() const noexcept;
  /// Returns the number of the episode in progress or, between two, of the last one; 0 before the first.
  std::int64_t episode() const noexcept { return episode_; }
  const Policy& policy() const noexcept { return *policy_; }
  std::size_t observers() const noexcept { return records_.size(); }

  /// Starts the next episode for all observers, and drops steps of the last one that the agent has not learned from.
  void begin_episode();

  /// Chooses an action for an observer and remembers it.
  /// Errors: bad_arguments (no such observer, the last action's reward has not been reported, the budget is used up, or
  ///         no episode is in progress).
  Result<int> select_action(std::size_t observer, const State& state);

  /// Remembers the reward of the observer's last action.
  /// Errors: bad_arguments (no such observer, or no action without a reward).
  Result<void> report_reward(std::size_t observer, double reward);

  /// Returns the seed of the stream from which an observer that plays on its own draws masks and actions: that of
  /// `select_action` in this episode.
  std::uint64_t stream_seed(std::size_t observer) const;

  /// Takes the whole episode of an observer that played on its own.
  /// Errors: bad_arguments (no such observer, or it has acted in this episode already).
  Result<void> accept(std::size_t observer, EpisodeRecord record);

  /// Returns how many steps an observer has taken in the episode; `reward_of` returns the sum of their rewards.
  std::int64_t steps_of(std::size_t observer) const noexcept;
  double reward_of(std::size_t observer) const noexcept;

  /// Learns from the episode.
  /// Errors: bad_arguments (an observer took no step, or its last reward is missing); the episode is lost then.
  Result<EpisodeOutcome> end_episode();

  double running_reward() const noexcept { return learner_->running_reward(); }
  bool is_solved() const noexcept { return learner_->running_reward() > options_.solved_at; }
  bool is_exhausted() const noexcept { return episode_ >= options_.config.max_episodes; }
  double solved_at() const noexcept { return options_.solved_at; }
  std::int64_t env_steps() const noexcept { return env_steps_; }

  std::uint64_t evaluation_seed() const;

  /// Returns the fingerprint over all parameters, each episode's steps and reward, and the states of all random
  /// streams.
  std::string fingerprint() const;

 private:
  explicit Training(const TrainingOptions& options);

  TrainingOptions options_;
  /// Behind a pointer, because the learner keeps the policy's address when a training is moved.
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Learner> learner_;
  std::vector<EpisodeRecord> records_;  ///< of the episode in progress, one per observer
  std::vector<rl::Pcg64> streams_;      ///< streams of masks and actions, one per observer, new in each episode
  std::unique_ptr<Fingerprint> history_;
  std::int64_t episode_ = 0;
  std::int64_t env_steps_ = 0;
  bool playing_ = false;
};

}  // namespace caftan::cartpole
