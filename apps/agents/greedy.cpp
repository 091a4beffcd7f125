#include "agents/greedy.hpp"

#include <numeric>

namespace caftan::agents {

Result<rl::VectorStep> step_environments(rl::VectorEnvironment& environments, const Actions& actions,
                                         std::vector<float>& bounded) {
  if (!environments.spec().is_continuous()) return environments.step(actions.discrete);
  to_bounds(environments.spec(), actions.continuous, bounded);
  return environments.step_continuous(bounded);
}

Result<std::vector<double>> play_greedily(rl::VectorEnvironment& environments, Policy& policy, std::uint64_t seed,
                                          std::int64_t most_steps) {
  const std::size_t n = environments.size();
  const auto first = environments.reset(seed);
  if (!first) return first.error();
  std::vector<float> observations(first->begin(), first->end());
  std::vector<double> returns(n, 0.0);
  std::vector<bool> is_over(n, false);
  std::size_t playing = n;
  Actions actions;
  std::vector<float> bounded;
  for (std::int64_t step = 0; step < most_steps && playing > 0; ++step) {
    policy.act_greedily(observations, actions);
    const auto taken = step_environments(environments, actions, bounded);
    if (!taken) return taken.error();
    for (std::size_t i = 0; i < n; ++i) {
      if (is_over[i]) continue;
      returns[i] += taken->rewards[i];
      if (!taken->ended(i)) continue;
      is_over[i] = true;
      --playing;
    }
    observations.assign(taken->observations.begin(), taken->observations.end());
  }
  return returns;
}

double mean_of(const std::vector<double>& values) noexcept {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace caftan::agents
