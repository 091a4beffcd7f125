#include "rref/ending_forks.hpp"

#include <utility>

namespace caftan::actors {

namespace {
/// Released references that have not ended, at some 5 KiB each with their values, until creations wait for them.
constexpr std::int64_t kMostEnding = 4096;
}  // namespace

void EndingForks::ended() {
  let_go_.fetch_sub(1);
  notify();
}

void EndingForks::when_quiet(std::function<void()> done) {
  {
    const base::LockGuard lock(mutex_);
    quiet_ = std::move(done);
  }
  notify();
}

Result<void> EndingForks::wait_until_few(base::TimePoint deadline) {
  if (ending() <= kMostEnding) return {};
  Promise<void> promise(ports_.shared_from_this());
  const Future<void> fewer = promise.future();
  {
    const base::LockGuard lock(mutex_);
    if (ending() <= kMostEnding) return {};
    waiting_.push_back(std::move(promise));
  }
  if (fewer.state()->wait(deadline) || ports_.executor().clock().now() < deadline) return {};
  return Error(Errc::timeout,
               "its time (CallOptions::timeout, else cluster.rpc_timeout) was over before enough of the " +
                   std::to_string(ending()) +
                   " references that were let go had ended: are all runners busy with plain code?");
}

void EndingForks::notify() {
  std::vector<Promise<void>> waiting;
  {
    const base::LockGuard lock(mutex_);
    if (!waiting_.empty() && ending() <= kMostEnding / 2) waiting.swap(waiting_);
    // Called under the lock, so that a waiter that gives up knows that no notification is under way.
    if (quiet_ && let_go_ == 0) std::exchange(quiet_, nullptr)();
  }
  for (Promise<void>& promise : waiting) promise.set({});
}

}  // namespace caftan::actors
