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

void Trajectory::clear() noexcept {
  observations.clear();
  actions.clear();
  rewards.clear();
}

}  // namespace caftan::rl
