/// `Trainers`: all trainers of hybrid data parallelism as the master sees them: one order to all, one outcome of all.
#pragma once

#include <cstddef>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/nn/remote_module.hpp"
#include "caftan/rpc/rref.hpp"
#include "hybrid_ddp/messages.hpp"
#include "hybrid_ddp/model.hpp"

namespace caftan::hybrid_ddp {

class Trainer;

/// Every method but `leave` waits for all trainers. Of several errors it returns the one that the others follow from.
/// Threads: one at a time. Errors of all methods: those of Trainer's methods and of calls.
class Trainers {
 public:
  /// @param trainers  by rank, at least one
  explicit Trainers(std::vector<RRef<Trainer>> trainers) : trainers_(std::move(trainers)) {}

  std::size_t size() const noexcept { return trainers_.size(); }

  /// Lets all read their texts. Errors: also invalid_config (the trainers have different passages).
  Result<TextFacts> open() const;
  /// Lets all make their replicas. @param order  its rank and its members follow from the trainers
  Result<void> join(JoinOrder order, const nn::RemoteModule<WordBags>& embedding) const;
  /// Lets all make steps. Returns sums, and the seconds of the slowest.
  /// Errors: also invalid_config (the replicas differ at the end).
  Result<TrainReport> train(const TrainOrder& order) const;
  /// Lets each classify its part of the passages to measure with.
  Result<Accuracy> measure() const;
  /// Returns the state of each.
  Result<std::vector<TrainerState>> save() const;
  /// Lets each take over its state. @param states  one of each trainer
  Result<void> load(const std::vector<TrainerState>& states) const;
  /// Lets all leave their group. A trainer that is lost has left.
  void leave() const;

 private:
  std::vector<RRef<Trainer>> trainers_;
};

}  // namespace caftan::hybrid_ddp
