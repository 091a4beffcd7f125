#include "caftan/transport/threaded_executor.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "thread_wait.hpp"

namespace caftan::transport {

namespace {

constexpr base::Duration kMaxFlushDelay = std::chrono::microseconds(20);
constexpr int kTasksBetweenPolls = 32;  // sockets are looked at even when the queue never empties
constexpr base::Duration kBackstopPeriod = std::chrono::microseconds(50);
constexpr int kQuietPeriods = 20;  // periods without work after which the backstop sleeps without a period
constexpr base::Duration kEpollPeriod =
    std::chrono::microseconds(20);  // between looks at the epoll while a runner spins
constexpr base::Duration kThreadAgain = std::chrono::milliseconds(100);

ThreadedExecutor::Options completed(ThreadedExecutor::Options options) {
  if (options.runners == 0) options.runners = std::max(2U, std::thread::hardware_concurrency());
  options.max_threads = std::max(options.max_threads, options.runners);
  return options;
}

}  // namespace

ThreadedExecutor::ThreadedExecutor(Options options)
    : options_(completed(std::move(options))),
      spins_(options_.spin),
      crew_(options_.runners, options_.max_threads),
      timers_([this](base::Task task) { post_due(std::move(task)); }) {
  bool complete = timers_.start();
  {
    const base::LockGuard lock(mutex_);
    for (unsigned i = 0; complete && i < options_.runners; ++i) {
      if (!add_thread_locked()) complete = false;
    }
    if (!threads_.empty()) return;
  }
  timers_.stop();
  throw std::system_error(EAGAIN, std::system_category(), "no thread for a runner");
}

ThreadedExecutor::~ThreadedExecutor() {
  timers_.stop();
  std::vector<Thread> threads;
  {
    const base::LockGuard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  parked_.notify_all();
  // Wakes one runner in the epoll; each runner that ends wakes the next one (`run`).
  polls_.wake();
  for (Thread& thread : threads) thread.join();
  queue_.clear();
  crew_.drop_held();
  flushes_.clear();
}

/// Returns false if the system gives no thread.
bool ThreadedExecutor::add_thread_locked() {
  auto thread = Thread::make([this] {
    if (options_.on_thread_start) options_.on_thread_start();
    run();
  });
  if (!thread) return false;
  threads_.push_back(*std::move(thread));
  crew_.thread_added();
  return true;
}

void ThreadedExecutor::post(base::Task task) {
  bool must_wake = false;
  {
    const base::LockGuard lock(mutex_);
    if (stopping_) return;
    queue_.push(std::move(task));
    has_tasks_.store(true, std::memory_order_relaxed);
    ++posts_;
    const ThreadState& thread = thread_state();
    // This runner takes the task right after its present one; for more tasks `run` wakes another runner.
    const bool runs_it_next = thread.runner_of == this && thread.defers_wakeups && !base::UserCode::runs_here();
    must_wake = crew_.has_idle() && !runs_it_next;
    task_wake_ = task_wake_ || must_wake;
  }
  if (must_wake) polls_.wake();
}

void ThreadedExecutor::post_at(base::TimePoint when, base::Task task) {
  timers_.add(when, TimerThread::Place::runner, std::move(task));
}

void ThreadedExecutor::keep_time(base::TimePoint when, base::Task task) {
  timers_.add(when, TimerThread::Place::here, std::move(task));
}

void ThreadedExecutor::post_due(base::Task task) {
  bool must_wake = false;
  {
    const base::LockGuard lock(mutex_);
    if (stopping_) return;
    queue_.push_due(std::move(task));
    has_tasks_.store(true, std::memory_order_relaxed);
    ++posts_;
    must_wake = crew_.has_idle();
    task_wake_ = task_wake_ || must_wake;
  }
  if (must_wake) polls_.wake();
}

bool ThreadedExecutor::defer_wakeups(bool defer) noexcept {
  return std::exchange(thread_state().defers_wakeups, defer);
}

bool ThreadedExecutor::inside_reading_wait() const noexcept { return thread_state().inside_reading_wait; }

void ThreadedExecutor::run() {
  thread_state().runner_of = this;
  base::RunnerLimit::set_current(this);
  int tasks = 0;
  for (;;) {
    base::Task task;
    bool must_wake = false;
    {
      base::UniqueLock lock(mutex_);
      if (stopping_) break;
      if (tasks < kTasksBetweenPolls && crew_.may_take_held()) {
        task = crew_.take_held();
      } else if (queue_.size() > 0 && tasks < kTasksBetweenPolls) {
        task = queue_.take();
        has_tasks_.store(queue_.size() > 0, std::memory_order_relaxed);
        // If this task takes long, another thread has to take the tasks and writes that wait here.
        must_wake = (queue_.size() > 0 || !flushes_.empty()) && want_backstop_locked();
      } else if (queue_.size() == 0 && flushes_.empty() && crew_.has_enough_idle()) {
        // Enough threads wait for work already: this one was a replacement of a blocked runner.
        crew_.park();
        parked_.wait(lock.native(), [this] {
          mutex_.assert_held();
          return crew_.may_unpark() || stopping_;
        });
        crew_.unparked();
        continue;
      }
    }
    if (task) {
      ++tasks;
      if (must_wake) polls_.wake();
      task();
      // Replies of short functions leave together; once a task has taken longer, replies are written at its end.
      flush_pending(kMaxFlushDelay);
      continue;
    }
    tasks = 0;
    flush_pending();
    if (!wait_idle()) break;
  }
  flush_pending();
  polls_.wake();  // the next one leaves too
}

/// Returns whether an idle runner has to be woken as backstop.
bool ThreadedExecutor::want_backstop_locked() {
  if (backstop_ != Backstop::none || !crew_.has_idle()) return false;
  backstop_ = Backstop::wanted;
  return true;
}

struct ThreadedExecutor::Found {
  int count = 0;  // as epoll_wait returns it
  epoll_event event{};
  std::shared_ptr<ClaimableSource> source = nullptr;  // has bytes
  bool task = false;
};

/// Waits for a socket, for bytes of a ring or for a wake-up, and serves what comes. Returns false when the executor
/// ends.
bool ThreadedExecutor::wait_idle() {
  int timeout = -1;
  std::uint32_t posts = 0;
  {
    const base::LockGuard lock(mutex_);
    if (stopping_) return false;
    if (queue_.size() > 0 || crew_.may_take_held()) timeout = 0;
    posts = posts_.load(std::memory_order_relaxed);
    crew_.begin_idle();
  }
  Found found;
  {
    std::optional<SpinWait> spin;
    ThreadState& thread = thread_state();
    if (timeout != 0 && thread.has_sources()) {
      spin.emplace(spins_, thread.idle_waits, SpinPolicy::Waiter::runner, clock_);
      found = spin_idle(*spin, posts);
    }
    if (found.count == 0 && !found.source && !found.task) found.count = polls_.wait(found.event, timeout);
  }
  bool flush = false;
  const bool is_wake = found.count > 0 && PollSet::is_wake(found.event);
  {
    const base::LockGuard lock(mutex_);
    if (is_wake && backstop_ == Backstop::wanted && !task_wake_) {
      backstop_ = Backstop::active;
      found.count = backstop(found.event);
      backstop_ = Backstop::none;
    } else if (backstop_ == Backstop::wanted) {
      // This runner may be the one that was woken to be the backstop, and does the work now.
      backstop_ = Backstop::none;
    }
    crew_.end_idle();
    if (found.count > 0 && PollSet::is_wake(found.event)) task_wake_ = false;
    flush = !flushes_.empty();
  }
  if (flush) flush_pending();
  if (found.count > 0 && !PollSet::is_wake(found.event)) serve(found.event);
  if (found.source) {
    const DeferWakeups deferred(*this);
    found.source->read_as_runner();
  }
  return true;
}

/// Looks for bytes of the sources that this runner has read lately (SP-3, SP-6). @param posts  what posts_ was when the
/// queue was empty
ThreadedExecutor::Found ThreadedExecutor::spin_idle(SpinWait& spin, std::uint32_t posts) {
  Found found;
  if (!spin.spins()) return found;
  if (spins_.wants_look()) look_later();
  const auto sources = thread_state().begin_spin();
  base::TimePoint next_poll{};
  bool looks = true;
  while (looks && spin.go_on()) {
    found.task = posts_.load(std::memory_order_relaxed) != posts;
    if (found.task) break;
    looks = false;
    for (const auto& source : sources) {
      const Look look = source ? source->look_as_runner() : Look::unable;
      looks = looks || look != Look::unable;
      if (look == Look::something) found.source = source;
    }
    if (found.source) break;
    if (spin.now() >= next_poll) {
      if (next_poll != base::TimePoint()) found.count = polls_.wait(found.event, 0);
      if (found.count > 0) break;
      next_poll = spin.now() + kEpollPeriod;
    }
    pause_in_spin();
  }
  spin.stop(found.source || found.task || found.count > 0);
  for (const auto& source : sources) {
    if (source && source != found.source) source->end_spin();
  }
  return found;
}

/// Has the number of the machine's tasks looked at while threads spin (SP-8).
void ThreadedExecutor::look_later() {
  const base::TimePoint now = clock_.now();
  // By chance, so that two processes do not look at the same time again and again, and find each other's looking
  // thread.
  const base::Duration by_chance = now.time_since_epoch() % SpinPolicy::kLookPeriod / 2;
  timers_.add(now + SpinPolicy::kLookPeriod + by_chance, TimerThread::Place::here, [this] {
    if (spins_.look(runnable_.read(), clock_.now())) look_later();
  });
}

/// Sleeps in periods and writes what is held back after each, until an event comes, tasks have waited for a whole
/// period, or nothing was left to do for kQuietPeriods. Returns as epoll_wait does.
int ThreadedExecutor::backstop(epoll_event& event) {
  int quiet = 0;
  for (;;) {
    // The number of begun tasks at which all tasks queued now have begun.
    const std::uint64_t all_begun = queue_.begun() + queue_.size();
    const bool flush = !flushes_.empty();
    quiet = flush || queue_.size() > 0 ? 0 : quiet + 1;
    mutex_.unlock();
    if (flush) flush_pending();
    const int count = polls_.wait_for(event, kBackstopPeriod);
    mutex_.lock();
    const bool left_waiting = queue_.begun() < all_begun;
    if (count > 0 || left_waiting || quiet == kQuietPeriods || stopping_) return count;
  }
}

void ThreadedExecutor::serve(const epoll_event& event) {
  const std::shared_ptr<Pollable> pollable = polls_.find(event);
  if (!pollable) return;
  const DeferWakeups deferred(*this);
  pollable->on_ready(event.events);
}

void ThreadedExecutor::watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) {
  polls_.watch(pollable, events);
}

void ThreadedExecutor::rearm(const Pollable& pollable, std::uint32_t events) { polls_.rearm(pollable, events); }

void ThreadedExecutor::unwatch(const Pollable& pollable) { polls_.unwatch(pollable); }

void ThreadedExecutor::has_read(const std::weak_ptr<ClaimableSource>& source) {
  ThreadState& thread = thread_state();
  if (spins_.is_on() && thread.runner_of == this) thread.note_source(source);
}

/// What a runner reads, and an actor that it resumes, may be followed by more of the same (`defers_wakeups`); so may
/// what a user's function sends.
bool ThreadedExecutor::runs_last_task() const noexcept {
  const ThreadState& thread = thread_state();
  return thread.runner_of == this && !thread.inside_reading_wait && !thread.defers_wakeups &&
         !base::UserCode::runs_here() && !has_tasks_.load(std::memory_order_relaxed);
}

void ThreadedExecutor::flush_later(std::shared_ptr<Flushable> flushable, FlushBy by) {
  const ThreadState& thread = thread_state();
  const bool is_runner = thread.runner_of == this;
  if (thread.inside_reading_wait || (!is_runner && by != FlushBy::soon)) return flushable->flush();
  bool must_wake = false;
  bool no_backstop = false;
  {
    const base::LockGuard lock(mutex_);
    // Without tasks that wait, the write is due as soon as this task has ended.
    if (flushes_.empty()) oldest_flush_ = queue_.size() > 0 ? clock_.now() : base::TimePoint();
    flushes_.push_back(std::move(flushable));
    has_flushes_.store(true, std::memory_order_release);
    if (by == FlushBy::soon || base::UserCode::runs_here()) {
      must_wake = want_backstop_locked();
      no_backstop = backstop_ == Backstop::none;
    }
  }
  if (must_wake) polls_.wake();
  if (no_backstop) flush_pending();
}

/// @param older_than  while tasks wait, writes that are not older than this wait for more
void ThreadedExecutor::flush_pending(base::Duration older_than) {
  // What this thread has appended itself it sees without the lock; what another thread appends meanwhile is that one's.
  if (!has_flushes_.load(std::memory_order_acquire)) return;
  // Its memory goes around between this thread and the executor.
  std::vector<std::shared_ptr<Flushable>> flushes = std::move(thread_state().flushes);
  {
    const base::LockGuard lock(mutex_);
    const bool is_due = older_than == base::Duration::zero() || queue_.size() == 0 ||
                        oldest_flush_ == base::TimePoint() || clock_.now() - oldest_flush_ > older_than;
    if (is_due) {
      flushes.swap(flushes_);
      has_flushes_.store(false, std::memory_order_relaxed);
    }
  }
  for (const auto& flushable : flushes) flushable->flush();
  flushes.clear();
  thread_state().flushes = std::move(flushes);
}

base::Executor::Wait* ThreadedExecutor::make_wait(std::byte* room) {
  static_assert(sizeof(ThreadWait) <= kWaitSize);
  return ::new (room) ThreadWait(*this);
}

// ---- runners that wait

void ThreadedExecutor::enter_blocked() {
  bool must_wake = false;
  {
    const base::LockGuard lock(mutex_);
    crew_.enter_blocked();
    if (stopping_) return;
    if (crew_.has_idle()) {
      must_wake = queue_.size() > 0;
      task_wake_ = task_wake_ || must_wake;
    } else if (!replace_locked() && !std::exchange(replacement_due_, true)) {
      timers_.add(clock_.now() + kThreadAgain, TimerThread::Place::here, [this] { replace_again(); });
    }
  }
  if (must_wake) polls_.wake();
}

void ThreadedExecutor::leave_blocked() {
  const base::LockGuard lock(mutex_);
  crew_.leave_blocked();
}

/// Replaces a runner that waits, if a runner is missing. Returns false if no runner is left and the system gives no
/// thread.
bool ThreadedExecutor::replace_locked() {
  switch (crew_.replace()) {
    case Crew::Replacement::none:
      return true;
    case Crew::Replacement::parked:
      parked_.notify_one();
      return true;
    case Crew::Replacement::thread:
      (void)add_thread_locked();
      return true;
    case Crew::Replacement::last_thread:
      return add_thread_locked();
  }
  return true;
}

void ThreadedExecutor::replace_again() {
  const base::LockGuard lock(mutex_);
  if (stopping_) return;
  replacement_due_ = !replace_locked();
  if (replacement_due_) timers_.add(clock_.now() + kThreadAgain, TimerThread::Place::here, [this] { replace_again(); });
}

bool ThreadedExecutor::begin_wait() noexcept {
  bool must_wake = false;
  {
    const base::LockGuard lock(mutex_);
    if (!crew_.has_permit()) return false;
    // One thread must stay free: it is made before the wait begins, or the wait is refused.
    if (!stopping_ && crew_.needs_thread_for_wait() && !add_thread_locked()) return false;
    crew_.begin_wait();
    must_wake = wake_for_held_locked();
  }
  if (must_wake) polls_.wake();
  return true;
}

void ThreadedExecutor::end_wait() noexcept {
  bool must_wake = false;
  {
    const base::LockGuard lock(mutex_);
    crew_.end_wait();
    must_wake = wake_for_held_locked();
  }
  if (must_wake) polls_.wake();
}

/// Returns whether an idle runner has to be woken for a call that was held back and may begin now.
bool ThreadedExecutor::wake_for_held_locked() noexcept {
  const bool must_wake = crew_.may_wake_for_held();
  task_wake_ = task_wake_ || must_wake;
  return must_wake;
}

bool ThreadedExecutor::may_begin(unsigned depth) noexcept {
  if (crew_.may_begin_unasked(depth)) return true;
  const base::LockGuard lock(mutex_);
  return crew_.may_begin(depth);
}

void ThreadedExecutor::hold_call(unsigned depth, base::Task call) {
  const base::LockGuard lock(mutex_);
  crew_.hold(depth, std::move(call));
}

Error ThreadedExecutor::too_many_wait() const {
  const base::LockGuard lock(mutex_);
  return crew_.too_many_wait();
}

}  // namespace caftan::transport
