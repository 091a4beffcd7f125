#include "learner.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace caftan::cartpole {

Learner::Learner(Policy& policy, LearnerOptions options)
    : options_(options),
      gradient_(policy, {.learning_rate = options.learning_rate, .one_thread = options.one_thread}) {}

std::vector<double> Learner::normalized_returns(std::span<const EpisodeRecord> episodes) const {
  std::vector<std::span<const double>> rewards;
  for (const EpisodeRecord& episode : episodes) rewards.emplace_back(episode.trajectory.rewards);
  std::vector<double> returns = rl::discounted_returns(rewards, options_.gamma, options_.returns);
  rl::normalize(returns);
  return returns;
}

Result<EpisodeOutcome> Learner::learn(std::span<const EpisodeRecord> episodes) {
  EpisodeOutcome outcome{.worst_reward = std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    const rl::Trajectory& trajectory = episodes[i].trajectory;
    if (trajectory.rewards.size() != trajectory.actions.size()) return incomplete_episode(i);
    const double reward = trajectory.total_reward();
    outcome.worst_reward = std::min(outcome.worst_reward, reward);
    outcome.mean_reward += reward / static_cast<double>(episodes.size());
    outcome.steps += static_cast<std::int64_t>(trajectory.steps());
  }
  const auto loss = gradient_.step(episodes, normalized_returns(episodes));
  if (!loss) return loss.error();
  outcome.loss = *loss;
  running_reward_ = options_.running_average * outcome.worst_reward + (1 - options_.running_average) * running_reward_;
  outcome.running_reward = running_reward_;
  return outcome;
}

}  // namespace caftan::cartpole
