#include "caftan/base/internal/gate.hpp"

namespace caftan::base {

void Gate::leave() noexcept {
  if (inside_.fetch_sub(1) != 1 || !is_waited_for_.load()) return;
  const LockGuard lock(mutex_);
  // Another visit may have begun meanwhile; only the last visit to end notifies.
  if (inside_.load() != 0) return;
  for (WaitPoint* const waiting : waiting_) waiting->notify();
  waiting_.clear();
  is_waited_for_.store(false);
}

bool Gate::wait_until_empty(Executor& executor, TimePoint deadline) {
  return executor.with_wait([&](Executor::Wait& wait) {
    {
      const LockGuard lock(mutex_);
      // Set before inside_ is read: either this thread reads that nothing is inside, or the last visit to end reads
      // that it is waited for.
      is_waited_for_.store(true);
      if (inside_.load() == 0) {
        is_waited_for_.store(!waiting_.empty());
        return true;
      }
      waiting_.push_back(&wait.point());
    }
    const bool emptied = wait.wait(deadline, nullptr);
    const LockGuard lock(mutex_);
    std::erase(waiting_, &wait.point());
    if (waiting_.empty()) is_waited_for_.store(false);
    return emptied;
  });
}

}  // namespace caftan::base
