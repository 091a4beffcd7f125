/// How a thread waits, and the state that it has while it is a runner or waits.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "caftan/transport/threaded_executor.hpp"

namespace caftan::transport {

/// What an executor keeps for the calling thread. Has its initial values for a thread that is no runner and has never
/// waited.
struct ThreadState {
  static constexpr std::size_t kMostSources = 4;  // on which an idle runner spins
  using Sources = std::array<std::shared_ptr<ClaimableSource>, kMostSources>;

  ThreadedExecutor* runner_of = nullptr;
  bool inside_reading_wait = false;
  bool defers_wakeups = false;  // the thread itself runs the tasks that it posts now, right after its present task
  int event_fd = -1;
  // The source that this thread has released late; no thread reads it for the moment.
  std::weak_ptr<ClaimableSource> deferred;
  std::vector<std::shared_ptr<Flushable>> flushes;  // empty between two writes of what was held back: only memory
  SpinHabit calls;                                  // waits for replies
  SpinHabit idle_waits;                             // of a runner

  /// Notes a source that this runner has read. It is one of those that it spins on when it is idle.
  void note_source(const std::weak_ptr<ClaimableSource>& source);
  bool has_sources() const noexcept { return has_sources_; }
  /// Begins to spin on those that allow it, and returns these; null in the place of others.
  Sources begin_spin();

  ~ThreadState() {
    if (event_fd >= 0) ::close(event_fd);
  }

 private:
  std::array<std::weak_ptr<ClaimableSource>, kMostSources> sources_;  // the latest first
  bool has_sources_ = false;
};

/// Lets the other thread of the core run for a moment, and the memory bus rest, between two turns of a spin.
inline void pause_in_spin() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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
  class Blocked;
  /// What one turn of reading a source has found.
  enum class Seen : std::uint8_t {
    nothing,
    bytes,  ///< or the end of the source
    late,   ///< the same, and the deadline has passed: they are read, then the wait is over
    over,   ///< notified, or late without bytes
  };
  bool read_until_notified(ClaimableSource& source, base::TimePoint deadline, std::optional<SpinWait>& spin,
                           Blocked& blocked);
  static Seen look(ClaimableSource& source, base::TimePoint deadline, SpinWait& spin);
  Seen sleep(ClaimableSource& source, base::TimePoint deadline);
  void sleep_until_notified(base::TimePoint deadline);

  ThreadedExecutor& executor_;
  std::atomic<std::uint32_t> state_{kIdle};
  const int event_fd_;  // set by the constructor, before another thread can notify
};

}  // namespace caftan::transport
