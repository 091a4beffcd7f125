#include "goal.hpp"

#include <cmath>

#include "caftan/base/settings_io.hpp"

namespace caftan::cartpole {

std::optional<UnreachableGoal> find_unreachable_goal(const AgentConfig& agent, std::size_t observers,
                                                     const rl::EnvironmentSpec& environment) {
  const std::optional<double> goal = agent.solved_at ? agent.solved_at : environment.solved_at;
  if (!goal) return std::nullopt;
  const std::string passed = ": no running reward can pass the goal of " + format_fixed(*goal, 1);
  if (environment.max_steps > 0 && environment.max_steps <= *goal) {  // each step gives a reward of 1
    return UnreachableGoal{
        environment.id + " ends an episode after " + std::to_string(environment.max_steps) + " steps" + passed, true};
  }
  const auto count = static_cast<std::int64_t>(observers);
  const std::int64_t steps = agent.steps_per_episode / count;
  if (static_cast<double>(steps) > *goal) return std::nullopt;
  const auto needed = (static_cast<std::int64_t>(std::floor(*goal)) + 1) * count;
  return UnreachableGoal{std::to_string(observers) + (observers == 1 ? " observer has " : " observers share ") +
                         std::to_string(agent.steps_per_episode) + " steps an episode" +
                         (observers == 1 ? "" : ", " + std::to_string(steps) + " each") + passed +
                         "; steps_per_episode has to be " + std::to_string(needed) + " at least"};
}

}  // namespace caftan::cartpole
