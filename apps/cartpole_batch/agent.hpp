/// The role type "cartpole_batch.agent": owns the policy, answers several observers with one run, and learns after each
/// episode. What it decides is in training.hpp; here are the calls.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/batch.hpp"
#include "caftan/rpc/rref.hpp"
#include "cartpole_batch/config.hpp"
#include "cartpole_batch/progress_text.hpp"
#include "cartpole_batch/training.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::cartpole_batch {

class Observer;

class Agent {
 public:
  using Config = AgentConfig;

  Agent(RoleContext& context, Config config);

  /// Finds a batch.max_size that is not the one used: a note.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  /// Plays and learns for config.episodes.
  /// Errors: invalid_config (the training has diverged), cancelled (`stop` was requested), those of calls to observers;
  ///         the loss of an observer only if the run does not go on without it, or if none is left.
  Result<void> run(std::stop_token stop);

  // The methods below are called by observers while an episode is in progress; which one, their order says.

  /// Chooses an action for an observer's state.
  /// Errors: bad_arguments, as `Training::select_action`.
  Result<int> select_action(std::uint64_t observer, cartpole::State state);
  /// Chooses an action for each request: its observer and its state. A request that is refused fails its own caller
  /// alone.
  std::vector<Result<int>> select_actions(const Batch<std::uint64_t, cartpole::State>& requests);

 private:
  Result<void> play_episode();
  Result<std::vector<std::optional<Play>>> play();
  Result<void> lose(std::size_t observer, const Error& error);
  Result<void> limit_batches(std::size_t playing) const;
  void show(const Outcome& outcome, const std::vector<std::optional<Play>>& plays);
  Standing standing(double mean_reward) const;

  RoleContext& context_;
  Config config_;
  std::vector<RRef<Observer>> observers_;
  std::vector<bool> is_lost_;  ///< for each observer
  Training training_;
  base::SteadyClock clock_;
  base::TimePoint started_{};
  std::int64_t sub_episodes_ = 0;
  std::int64_t batches_ = 0;
  std::int64_t requests_ = 0;  ///< in those batches
};

}  // namespace caftan::cartpole_batch
