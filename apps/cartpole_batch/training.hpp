/// The agent's whole state apart from calls: policy, the episode in progress, running reward and fingerprint. Start
/// with `begin_episode`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/random.hpp"
#include "cartpole_batch/config.hpp"
#include "cartpole_batch/play.hpp"
#include "cartpole_learning/episode.hpp"
#include "cartpole_learning/policy.hpp"
#include "cartpole_learning/policy_gradient.hpp"
#include "fingerprint/fingerprint.hpp"

namespace caftan::cartpole_batch {

struct TrainingOptions {
  AgentConfig config;
  std::size_t observers = 1;
  std::uint64_t seed = 0;      ///< seed of parameters, masks and actions
  bool deterministic = false;  ///< the training gives the same bits whatever torch's number of threads is
};

/// What one episode of all observers gave.
struct Outcome {
  double mean_reward = 0;     ///< mean over the observers of their mean reward
  double running_reward = 0;  ///< the running average of mean_reward, with this episode
  double loss = 0;            ///< mean over the observers
  std::int64_t steps = 0;     ///< env steps of all observers
};

/// Every random number comes from a stream of its own (observer, episode), and each action is computed from its own
/// row: which requests share a batch, and in which order they come, changes no bit.
/// Threads: one at a time.
class Training {
 public:
  explicit Training(const TrainingOptions& options);

  std::int64_t episode() const noexcept { return episode_; }
  bool is_over() const noexcept { return episode_ >= options_.config.episodes; }
  double running_reward() const noexcept { return running_reward_; }
  std::int64_t env_steps() const noexcept { return env_steps_; }

  /// Starts the next episode for all observers, and drops steps of the last one that the agent has not learned from.
  void begin_episode();

  /// Chooses an action for an observer and remembers it.
  /// Errors: bad_arguments (no such observer, its steps of this episode are used up, or no episode is in progress).
  Result<int> select_action(std::size_t observer, const cartpole::State& state);

  /// A request for an action: which observer asks, and its state.
  using Request = std::tuple<std::uint64_t, cartpole::State>;
  /// As select_action for each request, with the same bits: one forward pass for all. A request that is refused leaves
  /// the others alone.
  std::vector<Result<int>> select_actions(std::span<const Request> requests);

  /// Learns from the episode.
  /// @param plays  one for each observer; nothing for one that is lost, whose steps are left out
  /// Errors: bad_arguments (no observer is left, or a play that does not fit the actions that were chosen for it);
  ///         invalid_config (the loss is not finite).
  Result<Outcome> end_episode(const std::vector<std::optional<Play>>& plays);

  /// Returns the fingerprint over all parameters, the rewards of all sub-episodes, and the states of all random
  /// streams.
  std::string fingerprint() const;

 private:
  Result<void> check(std::size_t observer, std::size_t asked_before) const;
  Result<std::size_t> count_fitting(const std::vector<std::optional<Play>>& plays) const;
  void remember(std::size_t observer, const Play& play);

  TrainingOptions options_;
  /// Behind a pointer, because `gradient_` keeps the policy's address when a training is moved.
  std::unique_ptr<cartpole::Policy> policy_;
  cartpole::PolicyGradient gradient_;
  std::vector<cartpole::EpisodeRecord> records_;  ///< of the episode in progress, one per observer
  std::vector<rl::Pcg64> streams_;                ///< of masks and actions, one per observer, new in each episode
  std::unique_ptr<Fingerprint> history_;
  std::int64_t episode_ = 0;
  std::int64_t env_steps_ = 0;
  double running_reward_ = 0;
  bool playing_ = false;
};

}  // namespace caftan::cartpole_batch
