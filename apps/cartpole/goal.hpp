/// Whether the goal of a training is within the steps that it allows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "caftan/rl/environment.hpp"
#include "config.hpp"

namespace caftan::cartpole {

struct UnreachableGoal {
  std::string text{};           ///< why, and the way out
  bool by_environment = false;  ///< no agent could reach it, however many steps it has
};

/// Returns nothing if a running reward can pass the goal: the agent's own, or the environment's.
std::optional<UnreachableGoal> find_unreachable_goal(const AgentConfig& agent, std::size_t observers,
                                                     const rl::EnvironmentSpec& environment);

}  // namespace caftan::cartpole
