/// The training of learner.hpp in one process without calls: actors and learner in turn. The reference for the roles,
/// which in deterministic mode reach the same fingerprint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actor_critic/config.hpp"
#include "actor_critic/learning.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/environments.hpp"

namespace caftan::actor_critic {

struct LocalOptions {
  LearnerConfig learner{};
  ActorConfig actor{};
  EvaluatorConfig evaluator{};
  std::uint64_t seed = 0;                  ///< of parameters and minibatches
  std::vector<std::uint64_t> actor_seeds;  ///< one per actor
  std::uint64_t evaluation_seed = 0;
  bool deterministic = false;
  /// Called after each evaluation; may be empty.
  std::function<void(const LearningState&, const UpdateReport&)> on_evaluation{};
};

struct LocalReport {
  LearningState state{};
  std::string fingerprint{};
};

/// Trains until max_frames or the target; `ahead`, `batch`, `checkpoint.keep`, `goal` and `resume` make no difference.
/// Errors: those of the environments; invalid_config (it diverged).
/// Threads: blocks; uses the calling thread.
Result<LocalReport> train_locally(const rl::Environments& known, const LocalOptions& options);

}  // namespace caftan::actor_critic
