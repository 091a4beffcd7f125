#include "caftan/base/gate.hpp"

#include <utility>

namespace caftan {

void Gate::leave() noexcept {
  if (inside_.fetch_sub(1) != 1) return;
  const LockGuard lock(mutex_);
  // Another visit may have begun since; the last visit to end notifies.
  if (waiter_ && inside_.load() == 0) std::exchange(waiter_, nullptr)->notify();
}

bool Gate::wait_until_empty(Executor& executor, TimePoint deadline) {
  return executor.with_wait([&](Executor::Wait& wait) {
    {
      const LockGuard lock(mutex_);
      if (inside_.load() == 0) return true;
      waiter_ = &wait.point();
    }
    const bool emptied = wait.wait(deadline, nullptr);
    const LockGuard lock(mutex_);
    waiter_ = nullptr;
    return emptied;
  });
}

}  // namespace caftan
