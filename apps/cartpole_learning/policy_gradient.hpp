/// The step of a REINFORCE learner: from episodes, and a weight for each of their actions, to new parameters.
#pragma once

#include <cstdint>
#include <span>

#include "caftan/base/result.hpp"
#include "cartpole_learning/adam.hpp"
#include "cartpole_learning/episode.hpp"
#include "cartpole_learning/policy.hpp"

namespace caftan::cartpole {

struct PolicyGradientOptions {
  double learning_rate = 1e-2;
  /// Compute gradients on one thread, whatever the process is set to: the number of threads decides in which order
  /// torch adds, and so the last bits.
  bool one_thread = false;
};

/// Threads: one at a time.
class PolicyGradient {
 public:
  /// @param policy  must outlive this object; its parameters change in `step` and only there
  PolicyGradient(Policy& policy, PolicyGradientOptions options);

  /// Takes one step of Adam down the loss - sum(weight[t] log p(action[t])). Log-probabilities are computed anew in one
  /// batch, from the stored states and masks, in tensors that this step alone has: so the result does not depend on the
  /// order in which actions were asked for, and nothing that came since has overwritten what autograd holds.
  /// @param episodes  one of each observer, in a fixed order; their rewards are not looked at
  /// @param weights   one for each action, of the first episode first
  /// @return the loss before the step
  /// Errors: bad_arguments (no episode, an empty one, or arrays that do not fit), and nothing has changed;
  ///         invalid_config (the loss is not finite), and the policy has taken the step: do not use it any more.
  Result<double> step(std::span<const EpisodeRecord> episodes, std::span<const double> weights);

 private:
  Policy& policy_;
  PolicyGradientOptions options_;
  Adam optimizer_;
};

/// Returns the error of an episode without steps or whose arrays have not one entry for each step.
Error incomplete_episode(std::size_t observer);

}  // namespace caftan::cartpole
