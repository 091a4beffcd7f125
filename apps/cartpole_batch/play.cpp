#include "cartpole_batch/play.hpp"

#include <numeric>
#include <span>
#include <string>

#include "caftan/rl/returns.hpp"
#include "cartpole_learning/environment.hpp"
#include "cartpole_learning/episode.hpp"

namespace caftan::cartpole_batch {

double Play::mean_reward() const {
  const std::size_t ended = rewards.size() - (is_cut && rewards.size() > 1 ? 1 : 0);
  const auto last = rewards.begin() + static_cast<std::ptrdiff_t>(ended);
  return std::accumulate(rewards.begin(), last, 0.0) / static_cast<double>(ended);
}

Result<Play> play(rl::Environment& environment, const PlayOptions& options, const Choose& choose) {
  if (options.steps < 1) {
    return Error(Errc::bad_arguments, "an observer plays 1 env step at least, not " + std::to_string(options.steps));
  }
  std::vector<std::vector<double>> sub_episodes(1);
  cartpole::State state{};
  const auto reset = [&]() -> Result<void> {
    const auto episode = static_cast<std::int64_t>(sub_episodes.size()) - 1;
    const auto first = environment.reset(cartpole::episode_seed(options.seed, episode));
    if (!first) return first.error();
    state = cartpole::to_state(*first);
    return {};
  };
  if (auto begun = reset(); !begun) return begun.error();
  Play played{.is_cut = true};
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const auto action = choose(state);
    if (!action) return action.error();
    const auto transition = environment.step(*action);
    if (!transition) return transition.error();
    sub_episodes.back().push_back(transition->reward);
    if (!transition->ended()) {
      state = cartpole::to_state(transition->observation);
    } else if (step + 1 < options.steps) {
      sub_episodes.emplace_back();
      if (auto begun = reset(); !begun) return begun.error();
    } else {
      played.is_cut = false;
    }
  }
  const std::vector<std::span<const double>> rewards(sub_episodes.begin(), sub_episodes.end());
  played.returns = rl::discounted_returns(rewards, options.gamma, rl::ReturnScope::per_observer);
  for (const auto& sub_episode : sub_episodes) {
    played.rewards.push_back(std::accumulate(sub_episode.begin(), sub_episode.end(), 0.0));
  }
  return played;
}

}  // namespace caftan::cartpole_batch
