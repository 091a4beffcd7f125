/// Discounted returns of episodes and their normalisation, as REINFORCE uses them.
#pragma once

#include <limits>
#include <span>
#include <vector>

namespace caftan::rl {

/// Where the discounted sum starts anew.
enum class ReturnScope {
  per_observer,  ///< at each episode: a step's return holds only what its own episode gave
  /// never: the episodes are one list, as in PyTorch's RPC tutorial. So the return of each episode contains that of the
  /// next episode, and learning gets worse with each observer.
  joined,
};

/// Returns G[t] = reward[t] + gamma G[t + 1], with 0 after the last step; [T].
/// @param gamma  0..1
std::vector<double> discounted_returns(std::span<const double> rewards, double gamma);

/// Returns the returns of several episodes in their order, [sum of T].
/// @param episodes  the rewards of each, [T] of its own
std::vector<double> discounted_returns(std::span<const std::span<const double>> episodes, double gamma,
                                       ReturnScope scope);

/// Subtracts the mean and divides by (standard deviation + epsilon), in place. The deviation is the unbiased one, and 0
/// for a single value, which thus becomes 0.
/// Source: the reinforce examples of PyTorch, where one value gives NaN.
void normalize(std::span<double> values, double epsilon = std::numeric_limits<float>::epsilon());

}  // namespace caftan::rl
