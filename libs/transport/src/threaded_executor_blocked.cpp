// Runners that wait: who replaces them, and how many there may be.
#include "caftan/transport/threaded_executor.hpp"

#include <string>

namespace caftan::transport {

void ThreadedExecutor::enter_blocked() {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    --running_;
    if (stopping_) return;
    if (idle_ > 0) {
      must_wake = !queue_.empty();
      task_wake_ = task_wake_ || must_wake;
    } else if (running_ < options_.runners) {
      // Otherwise nobody might be left to read sockets or to run what is queued.
      if (parked_count_ > unpark_) {
        ++unpark_;
        parked_.notify_one();
      } else if (threads_.size() < options_.max_threads || (running_ == 0 && unpark_ == 0)) {
        add_thread_locked();
      }
    }
  }
  if (must_wake) wake();
}

void ThreadedExecutor::leave_blocked() {
  const std::lock_guard lock(mutex_);
  ++running_;
}

bool ThreadedExecutor::begin_wait() noexcept {
  const std::lock_guard lock(mutex_);
  if (permits_ + 1 >= options_.max_threads) return false;
  ++permits_;
  return true;
}

void ThreadedExecutor::end_wait() noexcept {
  const std::lock_guard lock(mutex_);
  --permits_;
}

Error ThreadedExecutor::too_many_wait() const {
  const std::string limit = std::to_string(options_.max_threads);
  return Error(Errc::overloaded, std::to_string(options_.max_threads - 1) +
                                     " runners wait already; the limit is ThreadedExecutor::Options::max_threads = " +
                                     limit + ", one of them stays free");
}

}  // namespace caftan::transport
