/// The role type "hybrid_ddp.trainer": has the texts and a replica of the dense layer, and trains both it and the
/// embedding on the server, through distributed autograd. The master says when.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/nn/remote_module.hpp"
#include "caftan/nn/replicated.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "hybrid_ddp/config.hpp"
#include "hybrid_ddp/messages.hpp"
#include "hybrid_ddp/model.hpp"
#include "hybrid_ddp/passages.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::hybrid_ddp {

class Trainer {
 public:
  using Config = TrainerConfig;

  /// Returns what is wrong with the texts on this machine.
  static std::vector<app::MissingRequirement> requirements(const Config& config);

  Trainer(RoleContext& context, Config config);

  /// Reads the texts. Errors: those of read_passages.
  Result<TextFacts> open();

  // Errors of the methods below: bad_arguments (before `open`, or `join`), those of the group and of calls.

  /// Makes the replica, with the values of rank 0, and the optimizer over it and the embedding. All trainers must be
  /// asked to at the same time. Errors: also invalid_config (other layers elsewhere).
  Result<void> join(JoinOrder order, nn::RemoteModule<WordBags> embedding);
  /// Makes steps. Errors: also invalid_config (it diverged; the replicas differ), cancelled.
  Result<TrainReport> train(TrainOrder order);
  /// Classifies this trainer's part of the passages to measure with.
  Result<Accuracy> measure();
  /// Returns copies of the dense layer's parameters, and the optimizer's state.
  Result<TrainerState> save();
  /// Goes on from the state of a checkpoint, at all trainers. Errors: also bad_arguments (of another layer).
  Result<void> load(TrainerState state);
  /// Leaves the group.
  void leave();

 private:
  Result<void> step(std::int64_t number);
  Result<void> step_parameters(const autograd::Context& context);
  void show(const TrainReport& report, const TrainOrder& order, std::int64_t step) const;
  /// Ends the group with this error, since the steps of all other trainers wait for those of this one. Returns the
  /// error.
  Error give_up(const Error& error);

  RoleContext& context_;
  Config config_;
  std::optional<Passages> passages_;  ///< has a value from `open` on
  JoinOrder order_;
  nn::RemoteModule<WordBags> embedding_;
  std::shared_ptr<collectives::Collectives> group_;  ///< has a value from `join` on, like the two below
  std::optional<nn::Replicated<DenseLayer>> dense_;
  std::optional<optim::DistributedOptimizer> optimizer_;
  double loss_ = 0;  ///< of the last step, nats
  base::SteadyClock clock_;
};

}  // namespace caftan::hybrid_ddp
