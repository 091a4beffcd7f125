/// `TimerThread`: the thread of an executor that keeps time. It never runs user code, so what falls due is on time
/// however long all runners compute. Rules: docs/architecture.md, "Runners"; docs/adr/0016-a-thread-that-keeps-time.md.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/base/task.hpp"
#include "caftan/transport/internal/thread.hpp"

namespace caftan::transport {

/// Threads: any, all methods but `start` and `stop`.
class TimerThread {
 public:
  /// @param to_runners  receives, on this thread, each task that is for a runner
  explicit TimerThread(std::function<void(base::Task)> to_runners) : to_runners_(std::move(to_runners)) {}
  TimerThread(const TimerThread&) = delete;
  TimerThread& operator=(const TimerThread&) = delete;
  ~TimerThread() { stop(); }

  /// Returns false if the system gives no thread.
  bool start();
  /// Ends the thread; what has not fallen due is dropped, here and later. Safe to repeat.
  void stop();

  enum class Place : std::uint8_t {
    here,    ///< on the thread that keeps time: the task must not block, and must not run user code
    runner,  ///< handed to the runners
  };
  /// Runs `task` at `when`; tasks of the same moment run in the order of the calls.
  void add(base::TimePoint when, Place place, base::Task task);

 private:
  struct Timer {
    base::TimePoint when;
    std::uint64_t order;
    Place place;
    base::Task task;
  };
  static bool later(const Timer& a, const Timer& b) noexcept;
  void run();

  const std::function<void(base::Task)> to_runners_;
  const base::SteadyClock clock_;
  std::condition_variable changed_;
  base::Mutex mutex_;
  std::vector<Timer> timers_ CAFTAN_GUARDED_BY(mutex_);  // a heap, earliest first
  std::uint64_t order_ CAFTAN_GUARDED_BY(mutex_) = 0;
  bool stopping_ CAFTAN_GUARDED_BY(mutex_) = false;

  std::optional<Thread> thread_;
};

}  // namespace caftan::transport
