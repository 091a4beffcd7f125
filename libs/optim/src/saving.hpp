/// Saves and loads of a DistributedOptimizer, each a job in its queue (OP-10).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "asked.hpp"
#include "distributed_state.hpp"
#include "saved_state.hpp"

namespace caftan::optim {

/// Collects the states of all owners. Threads: one at a time.
class DistributedOptimizer::State::Save : public std::enable_shared_from_this<Save> {
 public:
  explicit Save(std::shared_ptr<State> state) : state_(std::move(state)), promise_(state_->caller_) {}

  /// Call it once, before `begin`.
  Future<wire::Bytes> future() { return promise_.future(); }
  void begin();
  /// The job does not begin.
  void refuse(const Error& error);

 private:
  /// Returns the bytes of a saved state with the parts of all owners.
  Result<wire::Bytes> write(std::vector<Result<OwnerState>> parts) const;

  const std::shared_ptr<State> state_;
  Promise<wire::Bytes> promise_;
};

/// Gives all owners a saved state: first each checks and keeps its part, then all take the parts over.
/// Threads: one at a time.
class DistributedOptimizer::State::Load : public std::enable_shared_from_this<Load> {
 public:
  Load(std::shared_ptr<State> state, SavedState saved)
      : state_(std::move(state)), saved_(std::move(saved)), asked_(Promise<void>(state_->caller_)) {}

  /// Call it once, before `begin`.
  Future<void> future() { return asked_.future(); }
  void begin();
  /// The job does not begin.
  void refuse(const Error& error);

 private:
  /// Ends the job without a change.
  void fail(const Error& error);
  Result<void> check() const;
  void on_staged(const std::vector<Result<void>>& outcomes);
  void take();

  const std::shared_ptr<State> state_;
  const SavedState saved_;
  Asked asked_;
};

}  // namespace caftan::optim
