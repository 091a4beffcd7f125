#include "caftan/rl/trajectory.hpp"

namespace caftan::rl {

double Trajectory::total_reward() const noexcept {
  double sum = 0;
  for (const double reward : rewards) sum += reward;
  return sum;
}

void Trajectory::append(std::span<const float> observation, std::int32_t action) {
  observations.insert(observations.end(), observation.begin(), observation.end());
  actions.push_back(action);
}

void Trajectory::append(std::span<const float> observation, std::span<const float> action) {
  observations.insert(observations.end(), observation.begin(), observation.end());
  continuous_actions.insert(continuous_actions.end(), action.begin(), action.end());
}

void Trajectory::append_outcome(const Transition& transition) {
  rewards.push_back(transition.reward);
  last_observation.assign(transition.observation.begin(), transition.observation.end());
  terminated = transition.terminated;
  truncated = transition.truncated;
}

void Trajectory::clear() noexcept {
  observations.clear();
  actions.clear();
  continuous_actions.clear();
  rewards.clear();
  last_observation.clear();
  terminated = truncated = false;
}

}  // namespace caftan::rl
