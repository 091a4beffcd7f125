#include "caftan/base/internal/gate.hpp"

namespace caftan::base {

void Gate::leave() noexcept {
  if (inside_.fetch_sub(1) != 1) return;
  const LockGuard lock(mutex_);
  // Another visit may have begun meanwhile; only the last visit to end notifies.
  if (inside_.load() != 0) return;
  for (WaitPoint* const waiting : waiting_) waiting->notify();
  waiting_.clear();
}

bool Gate::wait_until_empty(Executor& executor, TimePoint deadline) {
  return executor.with_wait([&](Executor::Wait& wait) {
    {
      const LockGuard lock(mutex_);
      if (inside_.load() == 0) return true;
      waiting_.push_back(&wait.point());
    }
    const bool emptied = wait.wait(deadline, nullptr);
    const LockGuard lock(mutex_);
    std::erase(waiting_, &wait.point());
    return emptied;
  });
}

}  // namespace caftan::base
