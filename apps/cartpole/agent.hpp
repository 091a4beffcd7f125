/// The role type "cartpole.agent": owns the policy and drives the episodes of its observers until the environment is
/// solved. What it decides is in training.hpp; here are the calls.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/rref.hpp"
#include "config.hpp"
#include "messages.hpp"
#include "progress_text.hpp"
#include "training.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::cartpole {

class Observer;

class Agent {
 public:
  using Config = AgentConfig;

  Agent(RoleContext& context, Config config);

  /// Finds a goal that cannot be reached. An error: too few steps for so many observers, or no solved_at where the
  /// observers' environments have different thresholds. A warning: an environment that ends its episodes before the
  /// goal.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  /// Trains until the running reward passes the threshold, then evaluates.
  /// Errors: goal_missed (max_episodes came first), invalid_config, cancelled (`stop` was requested), those of calls to
  ///         observers.
  Result<void> run(std::stop_token stop);

  // The methods below are called by observers while an episode is in progress.

  /// Chooses an action for an observer's state.
  /// Errors: bad_arguments, as `Training::select_action`.
  Result<int> select_action(std::uint64_t observer, State state);

  /// Takes the reward of the observer's last action.
  /// Errors: bad_arguments, as `Training::report_reward`.
  Result<void> report_reward(std::uint64_t observer, double reward);

  /// Takes the reward of the last action and chooses the next action, in one call.
  /// @param last_reward  of the action before; none on an episode's first step
  Result<int> step(std::uint64_t observer, State state, std::optional<double> last_reward);

 private:
  Result<void> prepare();
  Result<void> play_episode();
  Result<void> play_with_calls();
  Result<void> play_rollouts();
  Result<void> take_report(std::size_t observer, const EpisodeReport& report);
  Result<void> write_checkpoint();
  Result<void> finish();
  EpisodeOrder make_order(std::size_t observer) const;
  PolicyCopy copy_policy() const;
  Standing standing() const;
  void show(const EpisodeOutcome& outcome);

  RoleContext& context_;
  Config config_;
  std::vector<RRef<Observer>> observers_;
  std::uint64_t shared_seed_;
  std::string environment_{};         ///< of the first observer, from `run` on
  std::optional<Training> training_;  ///< from `run` on
  base::SteadyClock clock_;
  base::TimePoint started_{};
  std::int64_t calls_ = 0;
  double call_p50_us_ = 0;
};

}  // namespace caftan::cartpole
