/// How a thread waits, and the state that it has while it is a runner or waits.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "caftan/transport/threaded_executor.hpp"

namespace caftan::transport {

/// What an executor keeps for the calling thread. Has its initial values for a thread that is no runner and has never
/// waited.
struct ThreadState {
  ThreadedExecutor* runner_of = nullptr;
  bool inside_reading_wait = false;
  bool defers_wakeups = false;  // the thread itself runs the tasks that it posts now, right after its present task
  int event_fd = -1;
  // The source that this thread has released late; no thread reads it for the moment.
  std::weak_ptr<ClaimableSource> deferred;
  std::vector<std::shared_ptr<Flushable>> flushes;  // empty between two writes of what was held back: only memory

  ~ThreadState() {
    if (event_fd >= 0) ::close(event_fd);
  }
};

inline ThreadState& thread_state() {
  static thread_local ThreadState state;
  return state;
}

/// A wait of one thread: sleeps on a futex, or in poll while it reads a source itself.
class ThreadedExecutor::ThreadWait final : public base::Executor::Wait, public base::WaitPoint {
 public:
  explicit ThreadWait(ThreadedExecutor& executor);

  base::WaitPoint& point() noexcept override { return *this; }
  void notify() noexcept override;
  bool wait(base::TimePoint deadline, base::ReadableSource* source) override;

 private:
  // A futex waits for these values.
  static constexpr std::uint32_t kIdle = 0;
  static constexpr std::uint32_t kNotified = 1;
  static constexpr std::uint32_t kSleeping = 2;
  static constexpr std::uint32_t kPolling = 3;

  bool notified() const noexcept { return state_.load(std::memory_order_acquire) == kNotified; }
  bool read_until_notified(ClaimableSource& source, base::TimePoint deadline, ThreadState& thread);
  void sleep_until_notified(base::TimePoint deadline);

  ThreadedExecutor& executor_;
  std::atomic<std::uint32_t> state_{kIdle};
  const int event_fd_;  // set by the constructor, before another thread can notify
};

}  // namespace caftan::transport
