#include "thread_wait.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>
#include <utility>

namespace caftan::transport {

namespace {

/// Returns the event descriptor by which a notification wakes this thread while it sleeps in poll.
int thread_event_fd() {
  ThreadState& thread = thread_state();
  if (thread.event_fd < 0) thread.event_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return thread.event_fd;
}

/// Milliseconds until `when`, rounded up; -1 = for ever.
int poll_timeout(base::TimePoint when, const base::Clock& clock) {
  if (when == base::kNever) return -1;
  const base::TimePoint now = clock.now();
  if (when <= now) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(when - now).count();
  return static_cast<int>(std::min<std::int64_t>(ms, INT_MAX));
}

}  // namespace

void ThreadState::note_source(const std::weak_ptr<ClaimableSource>& source) {
  const auto is_same = [&](const std::weak_ptr<ClaimableSource>& other) {
    return !other.owner_before(source) && !source.owner_before(other);
  };
  if (is_same(sources_[0])) return;
  const auto place = std::find_if(sources_.begin() + 1, sources_.end() - 1, is_same);
  std::rotate(sources_.begin(), place, place + 1);
  sources_[0] = source;
  has_sources_ = true;
}

ThreadState::Sources ThreadState::begin_spin() {
  Sources spun;
  for (std::size_t i = 0; i < kMostSources; ++i) {
    spun[i] = sources_[i].lock();
    if (spun[i] && !spun[i]->begin_spin()) spun[i] = nullptr;
  }
  return spun;
}

ThreadedExecutor::ThreadWait::ThreadWait(ThreadedExecutor& executor)
    : executor_(executor), event_fd_(thread_event_fd()) {}

void ThreadedExecutor::ThreadWait::notify() noexcept {
  // Read before the state changes: afterwards the waiting thread may destroy this object.
  const int event_fd = event_fd_;
  const std::uint32_t before = state_.exchange(kNotified, std::memory_order_acq_rel);
  if (before == kSleeping) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  } else if (before == kPolling) {
    const std::uint64_t one = 1;
    (void)!::write(event_fd, &one, sizeof one);
  }
}

/// Marks the calling thread, if it is a runner, as one that waits, so that another thread takes its place.
class ThreadedExecutor::ThreadWait::Blocked {
 public:
  /// @param runner_of  whose runner this thread is; null = none's. It may be another executor than the one of the wait.
  explicit Blocked(ThreadedExecutor* runner_of) noexcept : runner_of_(runner_of) {}
  ~Blocked() {
    if (entered_) runner_of_->leave_blocked();
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

  /// To be called before each sleep; a thread that only spins is not replaced.
  void enter() {
    if (!runner_of_ || std::exchange(entered_, true)) return;
    runner_of_->enter_blocked();
  }

 private:
  ThreadedExecutor* const runner_of_;
  bool entered_ = false;
};

bool ThreadedExecutor::ThreadWait::wait(base::TimePoint deadline, base::ReadableSource* source) {
  if (notified()) return true;
  ThreadState& thread = thread_state();
  ThreadedExecutor* const runner_of = thread.runner_of;
  auto* claimable = static_cast<ClaimableSource*>(source);
  const bool claimed = claimable && claimable->claim_fd() >= 0 && claimable->claim();
  if (const auto deferred = std::exchange(thread.deferred, {}).lock()) {
    if (!claimed || deferred.get() != claimable) deferred->end_deferral();
  }
  executor_.flush_pending();
  Blocked blocked(runner_of);
  bool done = false;
  if (claimed) {
    {
      std::optional<SpinWait> spin;
      if (claimable->look() != Look::unable) {
        spin.emplace(executor_.spins_, thread.calls, SpinPolicy::Waiter::caller, executor_.clock_);
      }
      done = read_until_notified(*claimable, deadline, spin, blocked);
    }
    // A runner of this executor polls again soon, so it gives reading back at once. Another thread may give it back
    // late, because it is expected to call again.
    thread.deferred = claimable->release(done && runner_of != &executor_);
  }
  if (!done) {
    blocked.enter();
    sleep_until_notified(deadline);
  }
  return notified();
}

/// Returns true when the wait is over (notified or late), false when only sleeping is left to do.
bool ThreadedExecutor::ThreadWait::read_until_notified(ClaimableSource& source, base::TimePoint deadline,
                                                       std::optional<SpinWait>& spin, Blocked& blocked) {
  if (spin && spin->spins()) {
    source.stay_awake();
    if (executor_.spins_.wants_look()) executor_.look_later();
  }
  for (;;) {
    if (notified()) {
      if (spin) spin->stop(true);
      return true;
    }
    const bool spins = spin && spin->go_on();
    if (!spins) blocked.enter();
    const Seen seen = spins ? look(source, deadline, *spin) : sleep(source, deadline);
    if (seen == Seen::over) return true;
    if (seen == Seen::nothing) continue;
    ThreadState& thread = thread_state();
    thread.inside_reading_wait = true;
    const bool more = source.read_claimed();
    thread.inside_reading_wait = false;
    executor_.flush_pending();
    if (spins) spin->worked();
    if (!more) {
      if (spin) spin->stop(true);
      return notified();
    }
    if (seen == Seen::late) return true;
  }
}

/// One turn of a spin (SP-6).
ThreadedExecutor::ThreadWait::Seen ThreadedExecutor::ThreadWait::look(ClaimableSource& source, base::TimePoint deadline,
                                                                      SpinWait& spin) {
  const Look look = source.look();
  if (look == Look::unable) spin.stop();
  const bool late = spin.now() >= deadline;
  if (look == Look::something) return late ? Seen::late : Seen::bytes;
  if (late) return Seen::over;
  pause_in_spin();
  return Seen::nothing;
}

/// Sleeps until there is something to read, or the wait is over.
ThreadedExecutor::ThreadWait::Seen ThreadedExecutor::ThreadWait::sleep(ClaimableSource& source,
                                                                       base::TimePoint deadline) {
  if (!source.try_sleep()) {
    // Looked at in each turn: a peer that sends without end, bytes or bells, must not hold this thread beyond its
    // deadline. What has arrived is read once more.
    return deadline != base::kNever && executor_.clock_.now() >= deadline ? Seen::late : Seen::bytes;
  }
  std::uint32_t idle = kIdle;
  const bool sleeps = state_.compare_exchange_strong(idle, kPolling, std::memory_order_acq_rel);
  pollfd fds[2] = {{source.claim_fd(), POLLIN, 0}, {event_fd_, POLLIN, 0}};
  const int timeout = sleeps ? poll_timeout(deadline, executor_.clock_) : 0;
  const int ready = sleeps ? ::poll(fds, 2, timeout) : 0;
  const bool readable = fds[0].revents != 0;
  source.wake(readable);
  if (!sleeps) return Seen::over;
  std::uint32_t polling = kPolling;
  if (!state_.compare_exchange_strong(polling, kIdle, std::memory_order_acq_rel) || (fds[1].revents & POLLIN)) {
    std::uint64_t count = 0;
    (void)!::read(event_fd_, &count, sizeof count);
    if (notified()) return Seen::over;
  }
  if (ready == 0 && executor_.clock_.now() >= deadline) return Seen::over;
  if (!readable) return Seen::nothing;
  return timeout == 0 ? Seen::late : Seen::bytes;
}

void ThreadedExecutor::ThreadWait::sleep_until_notified(base::TimePoint deadline) {
  for (;;) {
    std::uint32_t idle = kIdle;
    if (!state_.compare_exchange_strong(idle, kSleeping, std::memory_order_acq_rel) && idle == kNotified) return;
    timespec left{};
    if (deadline != base::kNever) {
      const auto rest = deadline - executor_.clock_.now();
      if (rest <= base::Duration::zero()) {
        std::uint32_t sleeping = kSleeping;
        state_.compare_exchange_strong(sleeping, kIdle, std::memory_order_acq_rel);
        return;
      }
      left.tv_sec = static_cast<time_t>(rest.count() / 1'000'000'000);
      left.tv_nsec = static_cast<long>(rest.count() % 1'000'000'000);
    }
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state_), FUTEX_WAIT_PRIVATE, kSleeping,
              deadline == base::kNever ? nullptr : &left, nullptr, 0);
    if (notified()) return;
  }
}

}  // namespace caftan::transport
