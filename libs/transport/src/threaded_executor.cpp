#include "caftan/transport/threaded_executor.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

namespace caftan::transport {

namespace {

constexpr std::uint64_t kWakeKey = ~std::uint64_t{0};
constexpr Duration kMaxFlushDelay = std::chrono::microseconds(20);
constexpr int kTasksBetweenPolls = 32;  // sockets are looked at even when the queue never empties
constexpr Duration kWatchPeriod = std::chrono::microseconds(50);
constexpr int kQuietPeriods = 20;  // then the watch ends

/// What a thread carries while it is a runner or waits. Empty for threads that are neither.
struct ThreadState {
  ThreadedExecutor* runner_of = nullptr;
  bool reads_for_wait = false;
  bool quiet = false;  // inside Pollable::on_ready or QuietPosts: what is posted now runs here right afterwards
  int event_fd = -1;
  std::weak_ptr<ClaimableSource> deferred;  // released by this thread, and nobody reads it for the moment

  ~ThreadState() {
    if (event_fd >= 0) ::close(event_fd);
  }
};

ThreadState& thread_state() {
  static thread_local ThreadState state;
  return state;
}

/// Where notifications reach this thread while it sleeps in poll.
int thread_event_fd() {
  ThreadState& thread = thread_state();
  if (thread.event_fd < 0) thread.event_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return thread.event_fd;
}

/// Milliseconds until `when`, rounded up; -1 = for ever.
int poll_timeout(TimePoint when, TimePoint now) {
  if (when == kNever) return -1;
  if (when <= now) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(when - now).count();
  return static_cast<int>(std::min<std::int64_t>(ms, INT_MAX));
}

/// epoll_wait for one event and kWatchPeriod, or a millisecond on kernels before 5.11.
int wait_for_period(int epoll, epoll_event& event) {
  const timespec period{0, kWatchPeriod.count()};
  const int count = ::epoll_pwait2(epoll, &event, 1, &period, nullptr);
  return count >= 0 || errno != ENOSYS ? count : ::epoll_wait(epoll, &event, 1, 1);
}

ThreadedExecutor::Options completed(ThreadedExecutor::Options options) {
  if (options.runners == 0) options.runners = std::max(2U, std::thread::hardware_concurrency());
  options.max_threads = std::max(options.max_threads, options.runners);
  return options;
}

epoll_event event_of(std::uint32_t events, std::uint64_t key) {
  epoll_event event{};
  event.events = (events & EPOLLET) != 0 ? events : events | EPOLLONESHOT;
  event.data.u64 = key;
  return event;
}

}  // namespace

/// A wait of one thread: sleeps on a futex, or in poll while it reads a source itself.
class ThreadedExecutor::ThreadWait final : public Executor::Wait, public WaitPoint {
 public:
  explicit ThreadWait(ThreadedExecutor& executor) : executor_(executor), event_fd_(thread_event_fd()) {}

  WaitPoint& point() noexcept override { return *this; }

  void notify() noexcept override {
    const int event_fd = event_fd_;  // read first: once the state says notified, this object may be gone
    const std::uint32_t before = state_.exchange(kNotified, std::memory_order_acq_rel);
    if (before == kSleeping) {
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    } else if (before == kPolling) {
      const std::uint64_t one = 1;
      (void)!::write(event_fd, &one, sizeof one);
    }
  }

  bool wait(TimePoint deadline, ReadableSource* source) override {
    if (notified()) return true;
    ThreadState& thread = thread_state();
    // The one to be replaced; it need not be of the executor that this wait belongs to.
    ThreadedExecutor* const runner_of = thread.runner_of;
    auto* claimable = static_cast<ClaimableSource*>(source);
    const bool claimed = claimable && claimable->claim_fd() >= 0 && claimable->claim();
    if (const auto deferred = std::exchange(thread.deferred, {}).lock()) {
      if (!claimed || deferred.get() != claimable) deferred->end_deferral();
    }
    executor_.flush_pending();
    if (runner_of) runner_of->enter_blocked();
    bool done = false;
    if (claimed) {
      done = read_until_notified(*claimable, deadline, thread);
      thread.deferred =
          claimable->release(done && runner_of != &executor_);  // runners poll again soon, others may compute for long
    }
    if (!done) sleep_until_notified(deadline);
    if (runner_of) runner_of->leave_blocked();
    return notified();
  }

 private:
  static constexpr std::uint32_t kIdle = 0;
  static constexpr std::uint32_t kNotified = 1;
  static constexpr std::uint32_t kSleeping = 2;
  static constexpr std::uint32_t kPolling = 3;

  bool notified() const noexcept { return state_.load(std::memory_order_acquire) == kNotified; }

  /// Returns true when the wait is over (notified or late), false when only sleeping is left to do.
  bool read_until_notified(ClaimableSource& source, TimePoint deadline, ThreadState& thread) {
    for (;;) {
      std::uint32_t idle = kIdle;
      if (!state_.compare_exchange_strong(idle, kPolling, std::memory_order_acq_rel)) return true;
      pollfd fds[2] = {{source.claim_fd(), POLLIN, 0}, {event_fd_, POLLIN, 0}};
      const int ready = ::poll(fds, 2, poll_timeout(deadline, executor_.clock_.now()));
      std::uint32_t polling = kPolling;
      if (!state_.compare_exchange_strong(polling, kIdle, std::memory_order_acq_rel) || (fds[1].revents & POLLIN)) {
        std::uint64_t count = 0;
        (void)!::read(event_fd_, &count, sizeof count);
        if (notified()) return true;
      }
      if (ready == 0 && executor_.clock_.now() >= deadline) return true;
      if (fds[0].revents != 0) {
        thread.reads_for_wait = true;
        const bool more = source.read_claimed();
        thread.reads_for_wait = false;
        executor_.flush_pending();
        if (!more) return notified();
      }
    }
  }

  void sleep_until_notified(TimePoint deadline) {
    for (;;) {
      std::uint32_t idle = kIdle;
      if (!state_.compare_exchange_strong(idle, kSleeping, std::memory_order_acq_rel) && idle == kNotified) return;
      timespec left{};
      if (deadline != kNever) {
        const auto rest = deadline - executor_.clock_.now();
        if (rest <= Duration::zero()) {
          std::uint32_t sleeping = kSleeping;
          state_.compare_exchange_strong(sleeping, kIdle, std::memory_order_acq_rel);
          return;
        }
        left.tv_sec = static_cast<time_t>(rest.count() / 1'000'000'000);
        left.tv_nsec = static_cast<long>(rest.count() % 1'000'000'000);
      }
      ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state_), FUTEX_WAIT_PRIVATE, kSleeping,
                deadline == kNever ? nullptr : &left, nullptr, 0);
      if (notified()) return;
    }
  }

  ThreadedExecutor& executor_;
  std::atomic<std::uint32_t> state_{kIdle};
  const int event_fd_;  // set before anyone can notify
};

ThreadedExecutor::ThreadedExecutor(Options options)
    : options_(completed(std::move(options))), timers_([this](Task task) { post_due(std::move(task)); }) {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // every write is one edge and wakes one runner; the counter is never read
  event.data.u64 = kWakeKey;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_fd_, &event);
  bool complete = timers_.start();
  {
    const std::lock_guard lock(mutex_);
    for (unsigned i = 0; complete && i < options_.runners; ++i) {
      if (!add_thread_locked()) complete = false;
    }
    if (!threads_.empty()) return;
  }
  timers_.stop();
  ::close(wake_fd_);
  ::close(epoll_);
  throw std::system_error(EAGAIN, std::system_category(), "no thread for a runner");
}

ThreadedExecutor::~ThreadedExecutor() {
  timers_.stop();
  std::vector<Thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  parked_.notify_all();
  // Each runner that leaves passes the wake-up on (see run), so one edge is enough.
  wake();
  for (Thread& thread : threads) thread.join();
  due_.clear();
  queue_.clear();
  held_.clear();
  flushes_.clear();
  ::close(wake_fd_);
  ::close(epoll_);
}

/// Returns false if the system gives no thread.
bool ThreadedExecutor::add_thread_locked() {
  auto thread = Thread::make([this] {
    if (options_.on_thread_start) options_.on_thread_start();
    run();
  });
  if (!thread) return false;
  threads_.push_back(*std::move(thread));
  ++running_;
  publish_locked();
  return true;
}

void ThreadedExecutor::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

void ThreadedExecutor::post(Task task) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(task));
    const ThreadState& thread = thread_state();
    // This runner takes it right afterwards; see to more than one in `run`.
    const bool runs_it_next = thread.runner_of == this && thread.quiet && !UserCode::runs_here();
    must_wake = idle_ > 0 && !runs_it_next;
    task_wake_ = task_wake_ || must_wake;
  }
  if (must_wake) wake();
}

void ThreadedExecutor::post_at(TimePoint when, Task task) {
  timers_.add(when, TimerThread::Place::runner, std::move(task));
}

void ThreadedExecutor::keep_time(TimePoint when, Task task) {
  timers_.add(when, TimerThread::Place::here, std::move(task));
}

/// What is due goes ahead of the queue: a deadline does not wait for the work that it limits.
void ThreadedExecutor::post_due(Task task) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    due_.push_back(std::move(task));
    must_wake = idle_ > 0;
    task_wake_ = task_wake_ || must_wake;
  }
  if (must_wake) wake();
}

bool ThreadedExecutor::post_quietly(bool quietly) noexcept { return std::exchange(thread_state().quiet, quietly); }

bool ThreadedExecutor::reads_for_wait() const noexcept { return thread_state().reads_for_wait; }

Task ThreadedExecutor::take_task_locked() {
  std::deque<Task>& from = due_.empty() ? queue_ : due_;
  Task task = std::move(from.front());
  from.pop_front();
  ++begun_;
  return task;
}

void ThreadedExecutor::run() {
  thread_state().runner_of = this;
  RunnerLimit::set_current(this);
  int tasks = 0;
  for (;;) {
    Task task;
    bool must_wake = false;
    {
      std::unique_lock lock(mutex_);
      if (stopping_) break;
      if (tasks < kTasksBetweenPolls && may_take_held_locked(permits_ + running_ - idle_ - 1)) {
        task = take_held_locked();
      } else if (queued_locked() > 0 && tasks < kTasksBetweenPolls) {
        task = take_task_locked();
        // Behind a long task another thread has to look after what waits here.
        must_wake = (queued_locked() > 0 || !flushes_.empty()) && want_watch_locked();
      } else if (queued_locked() == 0 && flushes_.empty() && idle_ >= options_.runners) {
        // Enough threads wait for work already: this one was a replacement.
        --running_;
        publish_locked();
        ++parked_count_;
        parked_.wait(lock, [this] { return unpark_ > 0 || stopping_; });
        --parked_count_;
        ++running_;
        publish_locked();
        if (unpark_ > 0) --unpark_;
        continue;
      }
    }
    if (task) {
      ++tasks;
      if (must_wake) wake();
      task();
      // Replies of short functions leave together; after a longer one nobody's reply waits any more.
      if (flush_is_due()) flush_pending();
      continue;
    }
    tasks = 0;
    flush_pending();
    if (!sleep_in_epoll()) break;
  }
  flush_pending();
  wake();  // the next one leaves too
}

/// Returns whether an idle runner has to be woken to keep watch.
bool ThreadedExecutor::want_watch_locked() {
  if (watch_ != Watch::none || idle_ == 0) return false;
  watch_ = Watch::wanted;
  return true;
}

/// Waits for a socket or for a wake-up, and serves what comes. Returns false when the executor ends.
bool ThreadedExecutor::sleep_in_epoll() {
  int timeout = -1;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    if (queued_locked() > 0 || may_take_held_locked(permits_ + running_ - idle_ - 1)) timeout = 0;
    ++idle_;
  }
  epoll_event event{};
  int count = ::epoll_wait(epoll_, &event, 1, timeout);
  bool flush = false;
  {
    std::unique_lock lock(mutex_);
    if (count > 0 && event.data.u64 == kWakeKey && watch_ == Watch::wanted && !task_wake_) {
      watch_ = Watch::kept;
      count = keep_watch(lock, event);
      watch_ = Watch::none;
    } else if (watch_ == Watch::wanted) {
      watch_ = Watch::none;  // whoever was to keep it may be this runner: what it is for is done here
    }
    --idle_;
    if (count > 0 && event.data.u64 == kWakeKey) task_wake_ = false;
    flush = !flushes_.empty();
  }
  if (flush) flush_pending();
  if (count > 0 && event.data.u64 != kWakeKey) serve(event.data.u64, event.events);
  return true;
}

/// Sleeps for one period after the other until there is something to do for this runner; returns as epoll_wait does.
int ThreadedExecutor::keep_watch(std::unique_lock<std::mutex>& lock, epoll_event& event) {
  int quiet = 0;
  for (;;) {
    const std::uint64_t all_begun = begun_ + queued_locked();  // when all that is queued now has begun
    const bool flush = !flushes_.empty();
    quiet = flush || queued_locked() > 0 ? 0 : quiet + 1;
    lock.unlock();
    if (flush) flush_pending();
    const int count = wait_for_period(epoll_, event);
    lock.lock();
    const bool left_waiting = begun_ < all_begun;
    if (count > 0 || left_waiting || quiet == kQuietPeriods || stopping_) return count;
  }
}

void ThreadedExecutor::serve(std::uint64_t key, std::uint32_t events) {
  std::shared_ptr<Pollable> pollable;
  {
    const std::lock_guard lock(slots_mutex_);
    if (key < slots_.size()) pollable = slots_[key];
  }
  if (!pollable) return;
  const QuietPosts quiet(*this);
  pollable->on_ready(events);
}

void ThreadedExecutor::watch(const std::shared_ptr<Pollable>& pollable, std::uint32_t events) {
  {
    const std::lock_guard lock(slots_mutex_);
    if (free_slots_.empty()) {
      pollable->key_ = slots_.size();
      slots_.push_back(pollable);
    } else {
      pollable->key_ = free_slots_.back();
      free_slots_.pop_back();
      slots_[pollable->key_] = pollable;
    }
  }
  epoll_event event = event_of(events, pollable->key_);
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, pollable->fd(), &event);
}

void ThreadedExecutor::rearm(const Pollable& pollable, std::uint32_t events) {
  epoll_event event = event_of(events, pollable.key_);
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, pollable.fd(), &event);
}

void ThreadedExecutor::unwatch(const Pollable& pollable) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, pollable.fd(), nullptr);
  std::shared_ptr<Pollable> last;  // destroyed outside the lock
  const std::lock_guard lock(slots_mutex_);
  if (pollable.key_ < slots_.size() && slots_[pollable.key_].get() == &pollable) {
    last = std::move(slots_[pollable.key_]);
    free_slots_.push_back(static_cast<std::uint32_t>(pollable.key_));
  }
}

void ThreadedExecutor::flush_later(std::shared_ptr<Flushable> flushable, FlushBy by) {
  const ThreadState& thread = thread_state();
  const bool is_runner = thread.runner_of == this;
  if (thread.reads_for_wait || (!is_runner && by == FlushBy::queue_end)) return flushable->flush();
  bool must_wake = false;
  bool nobody_watches = false;
  {
    const std::lock_guard lock(mutex_);
    if (flushes_.empty()) oldest_flush_ = clock_.now();
    flushes_.push_back(std::move(flushable));
    if (by == FlushBy::soon || UserCode::runs_here()) {
      must_wake = want_watch_locked();
      nobody_watches = watch_ == Watch::none;
    }
  }
  if (must_wake) wake();
  if (nobody_watches) flush_pending();
}

bool ThreadedExecutor::flush_is_due() {
  const std::lock_guard lock(mutex_);
  return !flushes_.empty() && clock_.now() - oldest_flush_ > kMaxFlushDelay;
}

void ThreadedExecutor::flush_pending() {
  std::vector<std::shared_ptr<Flushable>> flushes;
  {
    const std::lock_guard lock(mutex_);
    if (flushes_.empty()) return;
    flushes.swap(flushes_);
  }
  for (const auto& flushable : flushes) flushable->flush();
}

Executor::Wait* ThreadedExecutor::make_wait(std::byte* room) {
  static_assert(sizeof(ThreadWait) <= kWaitSize);
  return ::new (room) ThreadWait(*this);
}

}  // namespace caftan::transport
