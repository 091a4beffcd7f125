/// The role type "cartpole.observer": plays episodes in its own environment when the agent asks. An observer keeps
/// nothing between episodes, so an observer that is started again continues where the earlier one stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"
#include "caftan/rpc/rref.hpp"
#include "cartpole_learning/episode.hpp"
#include "config.hpp"
#include "messages.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::cartpole {

class Agent;

class Observer {
 public:
  using Config = ObserverConfig;

  Observer(RoleContext& context, Config config);

  /// Returns what the environment is.
  Result<EnvironmentFacts> environment();

  /// Plays an episode, asking the agent for each action. Ends with the episode or with the order's budget.
  /// Errors: those of the calls to the agent; bad_arguments (an action the environment does not have).
  Result<EpisodeReport> run_episode(RRef<Agent> agent, EpisodeOrder order);

  /// Plays an episode alone with a copy of the policy.
  /// @param stream_seed  of the stream from which masks and actions are drawn
  /// Errors: bad_arguments (parameters that do not fit their size).
  Result<EpisodeRecord> rollout(EpisodeOrder order, PolicyCopy policy, std::uint64_t stream_seed);

  /// Plays episodes without dropout, always taking the more probable action.
  /// @return the sum of rewards of each, [episodes]
  /// Errors: bad_arguments, as for rollout.
  Result<std::vector<double>> evaluate(PolicyCopy policy, std::uint64_t seed, std::int64_t episodes);

 private:
  Result<std::unique_ptr<rl::Environment>> make_environment() const;
  std::uint64_t start_of(const EpisodeOrder& order) const;

  Config config_;
  std::uint64_t seed_;
  base::SteadyClock clock_;
};

}  // namespace caftan::cartpole
