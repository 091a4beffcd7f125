#include "caftan/rpc/future_state.hpp"

#include <utility>

#include "caftan/base/wait_permit.hpp"
#include "caftan/rpc/call_state.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/strand.hpp"
#include "permitted_wait.hpp"
#include "thread_point.hpp"

namespace caftan::rpc {

namespace {

/// The waiter of one thread.
class PointWaiter final : public StateWaiter {
 public:
  explicit PointWaiter(base::WaitPoint& point) : point_(point) {}
  void completed(bool) noexcept override {
    is_done_here_ = &of_thread == thread_;
    point_.notify();
  }
  /// Returns whether the waiting thread itself has completed the future, while it read frames in the wait: then no
  /// other thread uses this object, and it is registered no more. Threads: the one that waits, after its wait.
  bool is_done_here() const noexcept { return is_done_here_; }

 private:
  static thread_local constinit char of_thread;  // its address stands for the thread

  base::WaitPoint& point_;
  const char* const thread_ = &of_thread;
  bool is_done_here_ = false;  // another thread writes it before it notifies
};

thread_local constinit char PointWaiter::of_thread = 0;

}  // namespace

Error no_state() { return Error(Errc::broken_promise, "this future has no result: it is empty or was read already"); }

Error why_not_waited() {
  if (const Result<void> may = check_may_wait(); !may) return may.error();
  // On a runner, where waits may be refused, a wait without a deadline ends unready only if too many runners wait.
  if (const base::RunnerLimit* limit = base::RunnerLimit::current()) return limit->too_many_wait();
  return Error(Errc::shut_down, "the executor ended while a thread waited");
}

base::Executor* FutureCore::executor(std::shared_ptr<Caller>& keep) const {
  keep = caller_.lock();
  if (keep) return &keep->executor();
  return Ambient::current() ? Ambient::current()->executor : nullptr;
}

void end_wait_at_once() {
  if (!check_may_wait() || !TurnPause::is_due()) return;
  const base::WaitPermit permit;
  if (!permit) return;
  const TurnPause pause;
}

bool FutureCore::wait(base::TimePoint deadline) {
  const auto waited = permitted_wait(*this, deadline);
  return waited && *waited;
}

Result<bool> permitted_wait(FutureCore& future, base::TimePoint deadline) {
  if (future.ready()) {
    end_wait_at_once();
    return true;
  }
  if (const Result<void> may = check_may_wait(); !may) return may.error();
  const base::WaitPermit permit;
  if (!permit) return permit.error();
  std::shared_ptr<Caller> keep;
  base::Executor* const executor = future.executor(keep);
  const TurnPause pause;
  const NoUserCode reading;
  if (!executor) {
    const base::Continuations::Pause others(nullptr);
    ThreadPoint point;
    PointWaiter waiter(point);
    if (future.add_waiter(waiter)) {
      point.wait(deadline);
      future.remove_waiter(waiter);
    }
    return future.ready();
  }
  const std::shared_ptr<base::ReadableSource> source = future.source();
  return executor->with_wait([&](base::Executor::Wait& wait) {
    PointWaiter waiter(wait.point());
    if (!future.add_waiter(waiter)) return true;
    const bool notified = wait.wait(deadline, source.get());
    // Where another thread completes it, this also waits until that thread no longer uses the wait point.
    if (!notified || !waiter.is_done_here()) future.remove_waiter(waiter);
    return future.ready();
  });
}

bool FutureCore::wait_for(base::Duration timeout) {
  if (ready()) {
    end_wait_at_once();
    return true;
  }
  std::shared_ptr<Caller> keep;
  const base::Executor* const executor = this->executor(keep);
  const base::TimePoint now = executor ? executor->clock().now() : base::SteadyClock().now();
  return wait(timeout < base::kNever - now ? now + timeout : base::kNever);
}

void FutureCore::add_continuation(base::Task continuation) {
  {
    const base::LockGuard lock(mutex_);
    if (!ready()) {
      continuations_.push_back(std::move(continuation));
      return;
    }
  }
  run_continuation(std::move(continuation));
}

bool FutureCore::add_waiter(StateWaiter& waiter) {
  const base::LockGuard lock(mutex_);
  if (ready()) return false;
  waiter.next_ = waiters_;
  waiters_ = &waiter;
  return true;
}

void FutureCore::remove_waiter(StateWaiter& waiter) noexcept {
  const base::LockGuard lock(mutex_);
  for (StateWaiter** at = &waiters_; *at; at = &(*at)->next_) {
    if (*at != &waiter) continue;
    *at = waiter.next_;
    return;
  }
}

void FutureCore::abandon() noexcept {
  {
    const base::LockGuard lock(mutex_);
    abandoned_ = true;
    if (!failed()) return;
  }
  report_unobserved();
}

FutureCore::FollowUp FutureCore::mark_ready(State state) {
  const bool failed = state == State::failed;
  state_.store(state, std::memory_order_release);
  for (StateWaiter* waiter = waiters_; waiter;) {
    StateWaiter* const next = waiter->next_;
    waiter->completed(failed);
    waiter = next;
  }
  waiters_ = nullptr;
  return {std::exchange(continuations_, {}), failed && abandoned_};
}

void FutureCore::follow_up(FollowUp next) {
  if (next.report) report_unobserved();
  for (base::Task& continuation : next.continuations) run_continuation(std::move(continuation));
}

void FutureCore::run_continuation(base::Task continuation) {
  std::shared_ptr<Caller> keep;
  base::Executor* const executor = this->executor(keep);
  const Ambient* const ambient = Ambient::current();
  // A continuation does not have the turn of the object whose method completes it or asks for it: if it ran inside of
  // that method and waited, the turn would not be given back (CALL-7).
  const bool elsewhere =
      ambient && (ambient->inside_reading_wait || ambient->brief || (ambient->turn && ambient->turn->is_held()));
  if (executor && (elsewhere || executor->inside_reading_wait())) return executor->post(std::move(continuation));
  base::Continuations::run(std::move(continuation));
}

void cancel_request(const std::weak_ptr<Caller>& caller, const CallToken& token) noexcept {
  if (token.call.value == 0) return;
  if (const auto alive = caller.lock()) alive->cancel(token);
}

void report_unobserved_error(const std::weak_ptr<Caller>& caller, std::string_view what, const Error& error) noexcept {
  if (error.code() == Errc::cancelled) return;
  if (const auto alive = caller.lock()) alive->on_unobserved_error(what, error);
}

}  // namespace caftan::rpc
