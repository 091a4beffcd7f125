// Runners that wait: who replaces them, and how many there may be.
#include "caftan/transport/threaded_executor.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace caftan::transport {

namespace {
constexpr Duration kThreadAgain = std::chrono::milliseconds(100);
constexpr unsigned kDepthsThatKeep = 4;    // calls that are nested deeper keep no permits for others
constexpr unsigned kKeptForEachDepth = 4;  // permits
}  // namespace

void ThreadedExecutor::enter_blocked() {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    --running_;
    publish_locked();
    if (stopping_) return;
    if (idle_ > 0) {
      must_wake = queued_locked() > 0;
      task_wake_ = task_wake_ || must_wake;
    } else if (!replace_locked() && !std::exchange(replacement_due_, true)) {
      timers_.add(clock_.now() + kThreadAgain, TimerThread::Place::here, [this] { replace_again(); });
    }
  }
  if (must_wake) wake();
}

/// Sees to it that enough threads run: otherwise none might be left to read sockets or to run what is queued. Returns
/// false if the system gives no thread where the last one has begun to wait.
bool ThreadedExecutor::replace_locked() {
  if (running_ >= options_.runners) return true;
  if (parked_count_ > unpark_) {
    ++unpark_;
    parked_.notify_one();
    return true;
  }
  const bool is_last = running_ == 0 && unpark_ == 0;
  if (threads_.size() >= options_.max_threads && !is_last) return true;
  return add_thread_locked() || !is_last;
}

void ThreadedExecutor::replace_again() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  replacement_due_ = !replace_locked();
  if (replacement_due_) timers_.add(clock_.now() + kThreadAgain, TimerThread::Place::here, [this] { replace_again(); });
}

void ThreadedExecutor::leave_blocked() {
  const std::lock_guard lock(mutex_);
  ++running_;
  publish_locked();
}

bool ThreadedExecutor::begin_wait() noexcept {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (permits_ + 1 >= options_.max_threads) return false;
    // The thread that stays free is there before the wait begins, or the wait is refused.
    if (!stopping_ && permits_ + 1 >= threads_.size() && !add_thread_locked()) return false;
    ++permits_;
    publish_locked();
    must_wake = wake_for_held_locked();
  }
  if (must_wake) wake();
  return true;
}

void ThreadedExecutor::end_wait() noexcept {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    --permits_;
    publish_locked();
    must_wake = wake_for_held_locked();
  }
  if (must_wake) wake();
}

/// Returns how many other threads may wait or run where a call of that depth begins (CALL-16). Each depth but the
/// greatest keeps some permits for those below it. A call of the greatest depth that there is anywhere waits for none
/// that is held, so it ends, and so do all.
unsigned ThreadedExecutor::most_engaged(unsigned depth) const noexcept {
  const unsigned most = options_.max_threads - 1;
  const unsigned step = std::min(kKeptForEachDepth, most / 8);
  const unsigned kept = depth < kDepthsThatKeep ? (kDepthsThatKeep - depth) * step : 0;
  return kept == 0 ? ~0U : most - kept - 1;
}

/// A thread that runs may wait next, so it counts as one that waits; those that are idle do not.
bool ThreadedExecutor::may_begin(unsigned depth) noexcept {
  const unsigned most = most_engaged(depth);
  if (most == ~0U || (!seen_.holds && seen_.engaged <= most)) return true;
  const std::lock_guard lock(mutex_);
  return (held_.empty() || depth > held_.begin()->first) && permits_ + running_ - idle_ - 1 <= most;
}

void ThreadedExecutor::hold_call(unsigned depth, Task call) {
  const std::lock_guard lock(mutex_);
  held_[depth].push_back(std::move(call));
  seen_.holds = true;  // this runner looks there when its task has ended
}

/// Also without any permit left: the call may need none.
/// @param others  threads that wait or run, without the one that would take it
bool ThreadedExecutor::may_take_held_locked(unsigned others) const noexcept {
  return !held_.empty() && (permits_ + 1 >= options_.max_threads || others <= most_engaged(held_.begin()->first));
}

/// Returns whether an idle runner has to be woken for a call that was held back and may begin now.
bool ThreadedExecutor::wake_for_held_locked() noexcept {
  const bool must_wake = idle_ > 0 && may_take_held_locked(permits_ + running_ - idle_);
  task_wake_ = task_wake_ || must_wake;
  return must_wake;
}

/// Precondition: held_ is not empty.
Task ThreadedExecutor::take_held_locked() {
  const auto deepest = held_.begin();
  Task call = std::move(deepest->second.front());
  deepest->second.pop_front();
  if (deepest->second.empty()) held_.erase(deepest);
  seen_.holds = !held_.empty();
  return call;
}

void ThreadedExecutor::publish_locked() noexcept {
  seen_.engaged.store(permits_ + running_, std::memory_order_relaxed);
}

Error ThreadedExecutor::too_many_wait() const {
  const std::lock_guard lock(mutex_);
  if (permits_ + 1 >= options_.max_threads) {
    const std::string limit = std::to_string(options_.max_threads);
    return Error(Errc::overloaded, std::to_string(options_.max_threads - 1) +
                                       " runners wait already; the limit is ThreadedExecutor::Options::max_threads = " +
                                       limit + ", one of them stays free");
  }
  return Error(Errc::overloaded, std::to_string(permits_) + " of " + std::to_string(threads_.size()) +
                                     " runners wait already, one stays free, and the system gives no more threads (a "
                                     "limit of processes of the user or the container)");
}

}  // namespace caftan::transport
