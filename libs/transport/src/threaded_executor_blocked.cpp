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
thread_local bool serves_call = false;     // this runner, between begin_call and end_call
}  // namespace

void ThreadedExecutor::enter_blocked() {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    --running_;
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
}

bool ThreadedExecutor::begin_wait() noexcept {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (permits_ + 1 >= options_.max_threads) return false;
    // The thread that stays free is there before the wait begins, or the wait is refused.
    if (!stopping_ && permits_ + 1 >= threads_.size() && !add_thread_locked()) return false;
    ++permits_;
    if (!serves_call) ++others_;
    must_wake = permits_ + 1 >= options_.max_threads && post_held_locked();
  }
  if (must_wake) wake();
  return true;
}

void ThreadedExecutor::end_wait() noexcept {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    --permits_;
    if (!serves_call) --others_;
    must_wake = post_held_locked();
  }
  if (must_wake) wake();
}

bool ThreadedExecutor::begin_call(unsigned depth) noexcept {
  if (!count_call(depth)) return false;
  serves_call = true;
  return true;
}

void ThreadedExecutor::end_call() noexcept {
  serves_call = false;
  --calls_;
  if (!holds_) return;
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    must_wake = post_held_locked();
  }
  if (must_wake) wake();
}

void ThreadedExecutor::hold_call(unsigned depth, Task call) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    held_[depth].push_back(std::move(call));
    holds_ = true;
    must_wake = post_held_locked();  // a call may have ended since begin_call
  }
  if (must_wake) wake();
}

// CALL-16. Each depth but the greatest keeps some permits for those below it. A call of the greatest depth that there
// is anywhere waits for none that is held, so it ends, and so do all.
bool ThreadedExecutor::count_call(unsigned depth) noexcept {
  const unsigned most = options_.max_threads - 1;
  const unsigned step = std::min(kKeptForEachDepth, most / 8);
  const unsigned kept = depth < kDepthsThatKeep ? (kDepthsThatKeep - depth) * step : 0;
  if (calls_.fetch_add(1) + others_ < most - kept || kept == 0) return true;
  --calls_;
  return false;
}

/// Posts the calls that may begin, the deepest first; and one if there are no permits left at all, since it may need
/// none. Returns whether an idle runner has to be woken.
bool ThreadedExecutor::post_held_locked() {
  bool posted = false;
  while (!held_.empty() && !stopping_) {
    const auto deepest = held_.begin();
    const bool is_last_resort = permits_ + 1 >= options_.max_threads;
    if (is_last_resort) {
      if (posted) break;
      ++calls_;
    } else if (!count_call(deepest->first)) {
      break;
    }
    queue_.push_back([this, call = std::move(deepest->second.front())]() mutable {
      serves_call = true;
      call();
      call = Task();
      end_call();
    });
    posted = true;
    deepest->second.pop_front();
    if (deepest->second.empty()) held_.erase(deepest);
  }
  holds_ = !held_.empty();
  const bool must_wake = posted && idle_ > 0;
  task_wake_ = task_wake_ || must_wake;
  return must_wake;
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
