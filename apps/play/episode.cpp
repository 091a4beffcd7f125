#include "play/episode.hpp"

#include <algorithm>
#include <cmath>

namespace caftan::play {

Result<void> check_fits(const agents::PolicyShape& shape, const rl::EnvironmentSpec& spec) {
  const agents::PolicyShape wanted = agents::shape_for(spec, shape.hidden, shape.layers);
  if (wanted.observation == shape.observation && wanted.outputs == shape.outputs &&
      wanted.continuous == shape.continuous) {
    return {};
  }
  const auto text = [](const agents::PolicyShape& one) {
    return std::to_string(one.observation) + " observations and " + std::to_string(one.outputs) +
           (one.continuous ? " parts of a continuous action" : " actions");
  };
  return Error(Errc::bad_arguments, "the policy is for " + text(shape) + ", " + spec.id + " has " + text(wanted));
}

Result<Episode> play_episode(rl::Environment& environment, const std::string& name, agents::Policy& policy,
                             std::uint64_t seed, std::int64_t most_steps) {
  if (auto fits = check_fits(policy.shape(), environment.spec()); !fits) return fits.error();
  Episode episode;
  std::vector<std::vector<float>> observations;
  const auto first = environment.reset(seed);
  if (!first) return first.error();
  observations.emplace_back(first->begin(), first->end());
  episode.returns.push_back(0);
  agents::Actions actions;
  std::vector<float> bounded;
  episode.cut = true;
  for (std::int64_t step = 0; step < most_steps && episode.cut; ++step) {
    policy.act_greedily(observations.back(), actions);
    if (policy.shape().continuous) agents::to_bounds(environment.spec(), actions.continuous, bounded);
    const auto taken =
        policy.shape().continuous ? environment.step_continuous(bounded) : environment.step(actions.discrete.front());
    if (!taken) return taken.error();
    observations.emplace_back(taken->observation.begin(), taken->observation.end());
    episode.returns.push_back(episode.returns.back() + taken->reward);
    episode.truncated = taken->truncated && !taken->terminated;
    episode.cut = !taken->ended();
  }
  std::vector<float> largest(environment.spec().observation_size, 0.0F);
  for (const auto& observation : observations) {
    for (std::size_t part = 0; part < largest.size(); ++part) {
      largest[part] = std::max(largest[part], std::abs(observation[part]));
    }
  }
  for (const auto& observation : observations) episode.scenes.push_back(scene_of(name, observation, largest));
  return episode;
}

}  // namespace caftan::play
