/// An executor of runners: threads that wait in one epoll, read what arrives and run the resulting tasks themselves. A
/// further thread keeps time. A run has one executor per process, shared by all its Workers. Rules about blocking and
/// wake-ups: docs/architecture.md, "Runners".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "caftan/base/executor.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/base/wait_permit.hpp"
#include "caftan/transport/internal/crew.hpp"
#include "caftan/transport/internal/poll_set.hpp"
#include "caftan/transport/internal/runnable_tasks.hpp"
#include "caftan/transport/internal/spin_policy.hpp"
#include "caftan/transport/internal/task_queue.hpp"
#include "caftan/transport/internal/thread.hpp"
#include "caftan/transport/internal/timer_thread.hpp"
#include "caftan/transport/poller.hpp"

namespace caftan::transport {

/// The executor of a process. Threads: any, all methods.
class ThreadedExecutor final : public PollingExecutor, private base::RunnerLimit {
 public:
  /// How many threads an executor has.
  struct Options {
    unsigned runners = 0;  ///< threads that wait for work at the same time; 0 = cores, at least 2
    /// The most threads, with those that replace waiting runners; at least `runners`. One thread always stays free:
    /// a wait of user code that would take the last one fails with `overloaded`, and calls are held back where this
    /// avoids such failures. Waits that cannot fail (for a worker's end, for an object's turn in a backward pass) get a
    /// thread beyond this limit if there is no other.
    unsigned max_threads = 128;
    std::function<void()> on_thread_start = {};  ///< runs first in each of these threads
    SpinOptions spin = {};                       ///< which threads wait without sleep; default: none
  };
  ThreadedExecutor() : ThreadedExecutor(Options()) {}
  /// Continues with fewer runners if the system refuses further threads. Throws std::system_error if the system refuses
  /// the first runner, or the thread that keeps time.
  explicit ThreadedExecutor(Options options);
  /// Stops and joins all runners, and drops the tasks that have not begun. Must not be called on a runner.
  ~ThreadedExecutor() override;

  void post(base::Task task) override;
  void post_at(base::TimePoint when, base::Task task) override;
  void keep_time(base::TimePoint when, base::Task task) override;
  const base::Clock& clock() const noexcept override { return clock_; }
  bool inside_reading_wait() const noexcept override;

  void watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) override;
  void rearm(const Pollable& pollable, std::uint32_t events) override;
  void unwatch(const Pollable& pollable) override;
  bool runs_last_task() const noexcept override;
  void flush_later(std::shared_ptr<Flushable> flushable, FlushBy by) override;
  void has_read(const std::weak_ptr<ClaimableSource>& source) override;
  /// Returns how often threads have waited without sleep.
  SpinPolicy::Counts spins() const noexcept { return spins_.counts(); }

 protected:
  Wait* make_wait(std::byte* room) override;
  bool defer_wakeups(bool defer) noexcept override;

 private:
  class ThreadWait;
  /// One idle runner is the backstop: it wakes up by itself every kBackstopPeriod, writes bytes that are held back, and
  /// takes tasks that have waited for a whole period. So no runner has to be woken for each such task or write.
  enum class Backstop { none, wanted, active };

  /// What an idle runner has found.
  struct Found;

  void run();
  bool wait_idle();
  Found spin_idle(SpinWait& spin, std::uint32_t posts);
  void look_later();
  int backstop(epoll_event& event) CAFTAN_REQUIRES(mutex_);
  bool want_backstop_locked() CAFTAN_REQUIRES(mutex_);
  void serve(const epoll_event& event);
  void post_due(base::Task task);
  bool add_thread_locked() CAFTAN_REQUIRES(mutex_);
  bool replace_locked() CAFTAN_REQUIRES(mutex_);
  void replace_again();
  void enter_blocked();
  void leave_blocked();
  bool begin_wait() noexcept override;
  void end_wait() noexcept override;
  bool may_begin(unsigned depth) noexcept override;
  void hold_call(unsigned depth, base::Task call) override;
  Error too_many_wait() const override;
  bool wake_for_held_locked() noexcept CAFTAN_REQUIRES(mutex_);
  void flush_pending(base::Duration older_than = base::Duration::zero());

  const Options options_;
  base::SteadyClock clock_;
  PollSet polls_;
  SpinPolicy spins_;
  RunnableTasks runnable_;               // used by the thread that keeps time
  std::atomic<std::uint32_t> posts_{0};  // tasks posted; written under mutex_

  mutable base::Mutex mutex_;
  TaskQueue queue_ CAFTAN_GUARDED_BY(mutex_);
  std::atomic<bool> has_tasks_{false};  // whether some wait in the queue; written under mutex_
  Crew crew_;                           // used under mutex_, except the method may_begin_unasked
  // Writes that are held back: the first thread that is free performs them.
  std::vector<std::shared_ptr<Flushable>> flushes_ CAFTAN_GUARDED_BY(mutex_);
  std::atomic<bool> has_flushes_{false};                    // whether there are any; written under mutex_
  base::TimePoint oldest_flush_ CAFTAN_GUARDED_BY(mutex_);  // the first moment of the clock: due at once
  Backstop backstop_ CAFTAN_GUARDED_BY(mutex_) = Backstop::none;
  bool task_wake_ CAFTAN_GUARDED_BY(mutex_) = false;  // an idle runner was woken for a task
  std::vector<Thread> threads_ CAFTAN_GUARDED_BY(mutex_);
  std::condition_variable parked_;  // threads that are not needed for now wait here
  // The system refused a thread in the place of a waiting one; a timer tries again.
  bool replacement_due_ CAFTAN_GUARDED_BY(mutex_) = false;
  bool stopping_ CAFTAN_GUARDED_BY(mutex_) = false;

  TimerThread timers_;
};

}  // namespace caftan::transport
