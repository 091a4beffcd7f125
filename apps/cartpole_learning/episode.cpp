#include "cartpole_learning/episode.hpp"

#include <algorithm>

namespace caftan::cartpole {
namespace {

Result<void> check_fits(const rl::Environment& environment) {
  const rl::EnvironmentSpec& spec = environment.spec();
  if (spec.observation_size == kObservationSize && spec.actions == static_cast<int>(kActions)) return {};
  return Error(Errc::bad_arguments, spec.id + " has " + std::to_string(spec.observation_size) + " observations and " +
                                        std::to_string(spec.actions) + " actions, the policy is for 4 and 2");
}

}  // namespace

State to_state(std::span<const float> observation) noexcept {
  State state;
  std::copy_n(observation.begin(), state.size(), state.begin());
  return state;
}

int choose_action(const Policy& policy, const State& state, rl::Pcg64& random, EpisodeRecord& record) {
  record.kept.resize(record.kept.size() + policy.mask_words());
  const int action = policy.sample_action(state, random, std::span(record.kept).last(policy.mask_words()));
  record.trajectory.append(state, action);
  return action;
}

std::vector<int> choose_actions(const Policy& policy, std::span<const Asked> asked) {
  const std::size_t words = policy.mask_words();
  std::vector<std::uint64_t> kept(words * asked.size());
  std::vector<Policy::Row> rows;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    rows.push_back({asked[i].state, asked[i].random, std::span(kept).subspan(i * words, words)});
  }
  std::vector<int> actions = policy.sample_actions(rows);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EpisodeRecord& record = *asked[i].record;
    record.kept.insert(record.kept.end(), rows[i].kept.begin(), rows[i].kept.end());
    record.trajectory.append(asked[i].state, actions[i]);
  }
  return actions;
}

Result<EpisodeRecord> roll_out(const Policy& policy, rl::Environment& environment, std::uint64_t environment_seed,
                               rl::Pcg64 random, std::int64_t budget) {
  if (auto fits = check_fits(environment); !fits) return fits.error();
  EpisodeRecord record;
  const auto first = environment.reset(environment_seed);
  if (!first) return first.error();
  State state = to_state(*first);
  for (std::int64_t step = 0; step < budget; ++step) {
    const auto transition = environment.step(choose_action(policy, state, random, record));
    if (!transition) return transition.error();
    record.trajectory.append_outcome(*transition);
    if (transition->ended()) break;
    state = to_state(transition->observation);
  }
  record.random = random.state();
  return record;
}

Result<std::vector<double>> evaluate_greedily(const Policy& policy, rl::Environment& environment, std::uint64_t seed,
                                              std::int64_t episodes) {
  if (auto fits = check_fits(environment); !fits) return fits.error();
  std::vector<double> rewards;
  for (std::int64_t episode = 0; episode < episodes; ++episode) {
    const auto first = environment.reset(rl::derive_seed({seed, static_cast<std::uint64_t>(episode)}));
    if (!first) return first.error();
    State state = to_state(*first);
    double sum = 0;
    for (bool ended = false; !ended;) {
      const auto transition = environment.step(policy.greedy_action(state));
      if (!transition) return transition.error();
      sum += transition->reward;
      state = to_state(transition->observation);
      ended = transition->ended();
    }
    rewards.push_back(sum);
  }
  return rewards;
}

}  // namespace caftan::cartpole
