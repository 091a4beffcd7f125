/// REINFORCE: from the episodes of all observers to one step of the policy's parameters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rl/returns.hpp"
#include "cartpole_learning/episode.hpp"
#include "cartpole_learning/policy.hpp"
#include "cartpole_learning/policy_gradient.hpp"

namespace caftan::cartpole {

struct LearnerOptions {
  double gamma = 0.99;
  double learning_rate = 1e-2;
  rl::ReturnScope returns = rl::ReturnScope::per_observer;
  double running_average = 0.05;  ///< weight of the newest episode
  /// Compute gradients on one thread, whatever the process is set to: the number of threads decides in which order
  /// torch adds, and so the last bits.
  bool one_thread = false;
};

/// What learning from one episode of each observer gave.
struct EpisodeOutcome {
  double worst_reward = 0;    ///< the smallest sum of rewards of an observer
  double mean_reward = 0;     ///< the mean of the observers' sums
  double running_reward = 0;  ///< the running average of the worst, with this episode
  double loss = 0;
  std::int64_t steps = 0;  ///< env steps of all observers
};

/// Threads: one at a time.
class Learner {
 public:
  /// @param policy  must outlive the learner; its parameters change in `learn` and only there
  Learner(Policy& policy, LearnerOptions options);

  /// Takes one step from the episodes, one of each observer in a fixed order. Log-probabilities are computed anew in
  /// one batch, from the stored states and masks, so the result does not depend on the order in which actions were
  /// asked for. Errors: bad_arguments (no episode, an empty one, or one whose arrays do not fit), and nothing has
  /// changed; invalid_config (the loss is not finite), and the policy has taken the step: do not use it any more.
  Result<EpisodeOutcome> learn(std::span<const EpisodeRecord> episodes);

  /// Starts at 0, as in PyTorch's tutorial.
  double running_reward() const noexcept { return running_reward_; }

 private:
  std::vector<double> normalized_returns(std::span<const EpisodeRecord> episodes) const;

  LearnerOptions options_;
  PolicyGradient gradient_;
  double running_reward_ = 0;
};

}  // namespace caftan::cartpole
