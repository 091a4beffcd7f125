/// The CartPole training of agent.hpp in one process without calls: the baseline of the speed ratio, and the reference
/// for the roles, which must reach the same fingerprint.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "cartpole_learning/environment.hpp"
#include "config.hpp"
#include "learner.hpp"

namespace caftan::cartpole {

struct LocalOptions {
  AgentConfig agent;
  ObserverConfig observer;
  std::uint64_t seed = 0;                        ///< as `TrainingOptions::seed`
  std::vector<std::uint64_t> environment_seeds;  ///< one per observer
  bool deterministic = false;
  /// Called after each episode with its number; may be empty.
  std::function<void(std::int64_t episode, const EpisodeOutcome&)> on_episode;
};

struct LocalReport {
  bool is_solved = false;
  std::int64_t episodes = 0;
  std::int64_t env_steps = 0;
  double running_reward = 0;
  std::vector<double> evaluation;  ///< rewards of the greedy episodes; empty if not solved
  std::string fingerprint;
};

/// Trains until solved or `agent.max_episodes`; not solved is no error here. `agent.protocol` makes no difference.
/// Errors: invalid_config (no observer, or fewer steps an episode than observers).
/// Threads: blocks; uses the calling thread.
Result<LocalReport> train_locally(const LocalOptions& options);

}  // namespace caftan::cartpole
