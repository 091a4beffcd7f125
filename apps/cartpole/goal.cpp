#include "goal.hpp"

#include <algorithm>
#include <cmath>

#include "caftan/base/settings_io.hpp"

namespace caftan::cartpole {
namespace {

using Reason = UnreachableGoal::Reason;

std::string with_threshold(const rl::EnvironmentSpec& environment) {
  return environment.id +
         (environment.solved_at ? " (" + format_fixed(*environment.solved_at, 1) + ")" : std::string(" (none)"));
}

/// Returns the first environment whose episodes end before the goal, or null. Each step gives a reward of 1.
const rl::EnvironmentSpec* find_too_short(const std::vector<rl::EnvironmentSpec>& environments, double goal) {
  const auto found = std::ranges::find_if(environments, [goal](const rl::EnvironmentSpec& environment) {
    return environment.max_steps > 0 && environment.max_steps <= goal;
  });
  return found == environments.end() ? nullptr : &*found;
}

}  // namespace

std::optional<UnreachableGoal> find_unreachable_goal(const AgentConfig& agent,
                                                     const std::vector<rl::EnvironmentSpec>& environments) {
  const rl::EnvironmentSpec& first = environments.front();
  const auto other = std::ranges::find_if(environments, [&first](const rl::EnvironmentSpec& environment) {
    return environment.solved_at != first.solved_at;
  });
  if (!agent.solved_at && other != environments.end()) {
    return UnreachableGoal{Reason::mixed, "its observers have environments with different thresholds, " +
                                              with_threshold(first) + " and " + with_threshold(*other) +
                                              ": set solved_at, the goal of the smallest reward of all observers"};
  }
  const std::optional<double> goal = agent.solved_at ? agent.solved_at : first.solved_at;
  if (!goal) return std::nullopt;
  const std::string passed = ": no running reward can pass the goal of " + format_fixed(*goal, 1);
  if (const rl::EnvironmentSpec* const environment = find_too_short(environments, *goal)) {
    return UnreachableGoal{Reason::environment, environment->id + " ends an episode after " +
                                                    std::to_string(environment->max_steps) + " steps" + passed};
  }
  const auto count = static_cast<std::int64_t>(environments.size());
  const std::int64_t steps = agent.steps_per_episode / count;
  if (static_cast<double>(steps) > *goal) return std::nullopt;
  const auto needed = (static_cast<std::int64_t>(std::floor(*goal)) + 1) * count;
  return UnreachableGoal{Reason::steps, std::to_string(count) + (count == 1 ? " observer has " : " observers share ") +
                                            std::to_string(agent.steps_per_episode) + " steps an episode" +
                                            (count == 1 ? "" : ", " + std::to_string(steps) + " each") + passed +
                                            "; steps_per_episode has to be " + std::to_string(needed) + " at least"};
}

}  // namespace caftan::cartpole
