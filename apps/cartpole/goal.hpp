/// Whether the goal of a training is within what its observers' environments and its steps allow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "caftan/rl/environment.hpp"
#include "config.hpp"

namespace caftan::cartpole {

struct UnreachableGoal {
  enum class Reason {
    steps,        ///< steps_per_episode is too small for the number of observers
    environment,  ///< no agent could reach it, however many steps it has
    mixed,        ///< solved_at is not given, and the observers' environments have different thresholds
  };
  Reason reason = Reason::steps;
  std::string text{};  ///< why, and the way out
};

/// Returns nothing if a running reward can pass the goal: the agent's own, or the one threshold of all environments.
/// The running reward follows the smallest reward of an observer, so the environment with the fewest steps decides.
/// @param environments  one for each observer, in their order; not empty
std::optional<UnreachableGoal> find_unreachable_goal(const AgentConfig& agent,
                                                     const std::vector<rl::EnvironmentSpec>& environments);

}  // namespace caftan::cartpole
