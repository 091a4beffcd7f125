/// The role type "rnn_lm.trainer": holds the text and the LSTM, and drives the training of a model whose other parts
/// are held by "rnn_lm.ps" roles. What it decides is in training.hpp; here are the calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "caftan/rpc/rref.hpp"
#include "checkpoint.hpp"
#include "config.hpp"
#include "progress_text.hpp"
#include "ps.hpp"
#include "training.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::rnn_lm {

class Trainer {
 public:
  using Config = TrainerConfig;

  /// Returns what is missing on this machine, or unsuitable: corpus, checkpoint, memory.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  Trainer(RoleContext& context, Config config);

  /// Trains for max_steps, validates, and prints a sample.
  /// Errors: goal_missed; those of the text and of the checkpoint; invalid_config (it diverged); cancelled (`stop` was
  ///         requested); those of calls and backward passes.
  Result<void> run(std::stop_token stop);

 private:
  Result<void> prepare();
  Result<void> resume(const std::filesystem::path& path);
  Result<void> train_step();
  Error diverged(const char* what, double value) const;
  Result<void> validate();
  Result<void> write_checkpoint();
  Result<void> finish();
  Result<Checkpoint> make_checkpoint();
  Ends make_ends() const;
  double traffic() const;
  void show(double loss);

  RoleContext& context_;
  Config config_;
  RRef<ParameterServer> embedding_;
  RRef<ParameterServer> decoder_;
  Ends ends_;
  std::optional<Training> training_;  ///< has a value from the call of `run` on, like all members below
  std::optional<optim::DistributedOptimizer> optimizer_;
  std::int64_t saved_at_ = -1;
  base::SteadyClock clock_;
  base::TimePoint started_{};
  std::int64_t first_step_ = 0;
  double first_traffic_ = 0;  ///< bytes
};

}  // namespace caftan::rnn_lm
