/// The caller of a job of a DistributedOptimizer that cannot be given up any more.
#pragma once

#include <atomic>
#include <utility>

#include "caftan/rpc/future.hpp"

namespace caftan::optim {

/// Gets the outcome or the time-out, whichever comes first. Threads: any.
class Asked {
 public:
  explicit Asked(Promise<void> promise) : promise_(std::move(promise)) {}

  /// Call it once, before `answer`.
  Future<void> future() { return promise_.future(); }
  void answer(Result<void> outcome) {
    if (!is_answered_.exchange(true)) promise_.set(std::move(outcome));
  }

 private:
  Promise<void> promise_;
  std::atomic<bool> is_answered_{false};
};

}  // namespace caftan::optim
