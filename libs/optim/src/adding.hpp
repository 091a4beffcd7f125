/// A group of parameters that comes to a DistributedOptimizer later, as a job in its queue (OP-11).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "added_group.hpp"
#include "asked.hpp"
#include "distributed_state.hpp"

namespace caftan::optim {

/// Adds a group at all owners of its parameters, or at none. Threads: one at a time.
class DistributedOptimizer::State::Adding : public std::enable_shared_from_this<Adding> {
 public:
  Adding(std::shared_ptr<State> state, std::vector<Share> shares, Algorithm algorithm)
      : state_(std::move(state)),
        group_(std::make_shared<AddedGroup>(state_->caller_, std::move(shares), state_->call_options())),
        algorithm_(std::move(algorithm)),
        asked_(Promise<void>(state_->caller_)) {}

  /// Call it once, before `begin`.
  Future<void> future() { return asked_.future(); }
  void begin();
  /// The job does not begin.
  void refuse(const Error& error);

 private:
  /// Ends the job without a change.
  void fail(const Result<void>& outcome);
  void take();

  const std::shared_ptr<State> state_;
  const std::shared_ptr<AddedGroup> group_;
  const Algorithm algorithm_;
  Asked asked_;
};

}  // namespace caftan::optim
