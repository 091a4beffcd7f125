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

bool ThreadedExecutor::ThreadWait::wait(base::TimePoint deadline, base::ReadableSource* source) {
  if (notified()) return true;
  ThreadState& thread = thread_state();
  // This thread may be a runner of another executor than the one of this wait; its own executor has to replace it.
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
    // A runner of this executor polls again soon, so it gives reading back at once. Another thread may give it back
    // late, because it is expected to call again.
    thread.deferred = claimable->release(done && runner_of != &executor_);
  }
  if (!done) sleep_until_notified(deadline);
  if (runner_of) runner_of->leave_blocked();
  return notified();
}

/// Returns true when the wait is over (notified or late), false when only sleeping is left to do.
bool ThreadedExecutor::ThreadWait::read_until_notified(ClaimableSource& source, base::TimePoint deadline,
                                                       ThreadState& thread) {
  for (;;) {
    if (notified()) return true;
    bool readable = !source.try_sleep();
    // Looked at in each turn: a peer that sends without end, bytes or bells, must not hold this thread beyond its
    // deadline. What has arrived is read once more.
    bool late = readable && deadline != base::kNever && executor_.clock_.now() >= deadline;
    if (!readable) {
      std::uint32_t idle = kIdle;
      const bool sleeps = state_.compare_exchange_strong(idle, kPolling, std::memory_order_acq_rel);
      pollfd fds[2] = {{source.claim_fd(), POLLIN, 0}, {event_fd_, POLLIN, 0}};
      const int timeout = sleeps ? poll_timeout(deadline, executor_.clock_) : 0;
      const int ready = sleeps ? ::poll(fds, 2, timeout) : 0;
      readable = fds[0].revents != 0;
      late = timeout == 0;
      source.wake(readable);
      if (!sleeps) return true;
      std::uint32_t polling = kPolling;
      if (!state_.compare_exchange_strong(polling, kIdle, std::memory_order_acq_rel) || (fds[1].revents & POLLIN)) {
        std::uint64_t count = 0;
        (void)!::read(event_fd_, &count, sizeof count);
        if (notified()) return true;
      }
      if (ready == 0 && executor_.clock_.now() >= deadline) return true;
    }
    if (readable) {
      thread.inside_reading_wait = true;
      const bool more = source.read_claimed();
      thread.inside_reading_wait = false;
      executor_.flush_pending();
      if (!more) return notified();
      if (late) return true;
    }
  }
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
