/// An executor of runners: threads that wait in one epoll, read what arrives and run the resulting tasks themselves. A
/// further thread keeps time. A run has one executor per process, shared by all its Workers. Rules about blocking and
/// wake-ups: docs/architecture.md, "Runners".
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "caftan/base/executor.hpp"
#include "caftan/base/wait_permit.hpp"
#include "caftan/transport/poller.hpp"
#include "caftan/transport/thread.hpp"
#include "caftan/transport/timer_thread.hpp"

struct epoll_event;

namespace caftan::transport {

class ThreadedExecutor final : public PollingExecutor, private RunnerLimit {
 public:
  struct Options {
    unsigned runners = 0;  ///< threads that wait for work at the same time; 0 = cores, at least 2
    /// The most threads, with those that replace waiting runners; at least `runners`. One thread always stays free:
    /// a wait of user code that would take the last one fails with `overloaded`, and calls are held back where this
    /// avoids such failures. Waits that cannot fail (for a worker's end, for an object's turn in a backward pass) get a
    /// thread beyond this limit if there is no other.
    unsigned max_threads = 128;
    std::function<void()> on_thread_start = {};  ///< runs first in each of these threads
  };
  ThreadedExecutor() : ThreadedExecutor(Options()) {}
  /// Continues with fewer runners if the system refuses further threads. Throws std::system_error if the system refuses
  /// the first runner, or the thread that keeps time.
  explicit ThreadedExecutor(Options options);
  /// Stops and joins all runners, and drops the tasks that have not begun. Must not be called on a runner.
  ~ThreadedExecutor() override;

  void post(Task task) override;
  void post_at(TimePoint when, Task task) override;
  void keep_time(TimePoint when, Task task) override;
  const Clock& clock() const noexcept override { return clock_; }
  bool reads_for_wait() const noexcept override;

  void watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) override;
  void rearm(const Pollable& pollable, std::uint32_t events) override;
  void unwatch(const Pollable& pollable) override;
  void flush_later(std::shared_ptr<Flushable> flushable, FlushBy by) override;

 protected:
  Wait* make_wait(std::byte* room) override;
  bool post_quietly(bool quietly) noexcept override;

 private:
  class ThreadWait;
  /// One idle runner keeps watch: it wakes up by itself every kWatchPeriod, writes bytes that are held back, and takes
  /// over tasks that have waited for a whole period. So no runner has to be woken for each such task or write.
  enum class Watch { none, wanted, kept };

  void run();
  bool sleep_in_epoll();
  int keep_watch(std::unique_lock<std::mutex>& lock, epoll_event& event);
  bool want_watch_locked();
  void serve(std::uint64_t key, std::uint32_t events);
  void post_due(Task task);
  std::size_t queued_locked() const noexcept { return due_.size() + queue_.size(); }
  Task take_task_locked();
  void wake() noexcept;
  bool add_thread_locked();
  bool replace_locked();
  void replace_again();
  void enter_blocked();
  void leave_blocked();
  bool begin_wait() noexcept override;
  void end_wait() noexcept override;
  bool may_begin(unsigned depth) noexcept override;
  void hold_call(unsigned depth, Task call) override;
  unsigned most_engaged(unsigned depth) const noexcept;
  bool may_take_held_locked(unsigned others) const noexcept;
  bool wake_for_held_locked() noexcept;
  Task take_held_locked();
  void publish_locked() noexcept;
  Error too_many_wait() const override;
  bool flush_is_due();
  void flush_pending();

  const Options options_;
  SteadyClock clock_;
  int epoll_ = -1;
  int wake_fd_ = -1;

  mutable std::mutex mutex_;
  std::deque<Task> queue_;
  std::deque<Task> due_;                             // timed tasks that are due; taken before queue_
  std::vector<std::shared_ptr<Flushable>> flushes_;  // the first thread that is free writes them
  TimePoint oldest_flush_;
  Watch watch_ = Watch::none;
  bool task_wake_ = false;   // an idle runner was woken for a task
  std::uint64_t begun_ = 0;  // tasks, in all
  std::vector<Thread> threads_;
  std::condition_variable parked_;
  unsigned parked_count_ = 0;
  unsigned unpark_ = 0;
  unsigned idle_ = 0;
  unsigned running_ = 0;                                       // threads that neither wait in a call nor are parked
  unsigned permits_ = 0;                                       // waits of user code that are under way
  std::map<unsigned, std::deque<Task>, std::greater<>> held_;  // calls that have not begun, by depth
  bool replacement_due_ = false;                               // the system refused a thread; a timer asks again
  bool stopping_ = false;

  std::mutex slots_mutex_;
  std::vector<std::shared_ptr<Pollable>> slots_;
  std::vector<std::uint32_t> free_slots_;

  /// What each call asks before it begins; written seldom, and under mutex_.
  struct alignas(64) {
    std::atomic<unsigned> engaged{0};  // running_ + permits_
    std::atomic<bool> holds{false};    // held_ is not empty
  } seen_;

  TimerThread timers_;
};

}  // namespace caftan::transport
