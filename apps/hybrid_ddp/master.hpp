/// The role type "hybrid_ddp.master": makes the embedding on the server, gives it to the trainers, orders how far they
/// train, and keeps checkpoints. It computes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/result.hpp"
#include "caftan/nn/remote_module.hpp"
#include "caftan/rpc/rref.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "hybrid_ddp/config.hpp"
#include "hybrid_ddp/messages.hpp"
#include "hybrid_ddp/ps.hpp"
#include "hybrid_ddp/trainers.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::hybrid_ddp {

class Master {
 public:
  using Config = MasterConfig;

  /// Returns what is missing or wrong: the backend, the trainers' texts, the checkpoint.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  Master(RoleContext& context, Config config);

  /// Trains for max_steps and measures.
  /// Errors: goal_missed; invalid_config (the trainers have other texts; it diverged; replicas that differ); those of
  ///   the checkpoint; cancelled (`stop` was requested); those of calls and of the group.
  Result<void> run(std::stop_token stop);

 private:
  Result<void> prepare();
  Result<void> join();
  Result<void> resume();
  Result<void> train_until(std::int64_t end, const std::stop_token& stop);
  Result<void> measure();
  Result<void> finish();
  Result<checkpoints::ModelCheckpoint> make_checkpoint();
  Result<void> write_checkpoint();
  checkpoints::Facts facts() const;

  RoleContext& context_;
  Config config_;
  RRef<ParameterServer> server_;
  Trainers trainers_;
  TextFacts text_;
  nn::RemoteModule<WordBags> embedding_;
  std::int64_t step_ = 0;
  std::int64_t saved_at_ = -1;
  std::int64_t measured_at_ = -1;
  Accuracy accuracy_;
  TrainReport sum_;  ///< of all trainers; seconds: of the slowest
};

}  // namespace caftan::hybrid_ddp
