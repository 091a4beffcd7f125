#include "caftan/rpc/wait.hpp"

#include <algorithm>
#include <atomic>

#include "caftan/base/wait_permit.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/strand.hpp"
#include "permitted_wait.hpp"
#include "thread_point.hpp"

namespace caftan::rpc {

namespace {

/// Ends one wait when enough of several futures are ready. Each future's state calls it; the call that decides wakes
/// the waiting thread.
class Counter {
 public:
  Counter(std::size_t open, Until until, base::WaitPoint& point) : open_(open), until_(until), point_(point) {}

  void completed(bool failed) noexcept {
    const bool last = open_.fetch_sub(1) == 1;
    if ((last || (failed && until_ == Until::all) || until_ == Until::first) && !notified_.exchange(true))
      point_.notify();
  }

 private:
  std::atomic<std::size_t> open_;
  std::atomic<bool> notified_{false};
  const Until until_;
  base::WaitPoint& point_;
};

class CountedWaiter final : public StateWaiter {
 public:
  explicit CountedWaiter(Counter& counter) : counter_(counter) {}
  void completed(bool failed) noexcept override { counter_.completed(failed); }

 private:
  Counter& counter_;
};

/// Returns the index that ends the wait, nullopt when it has to go on.
std::optional<std::size_t> decided(std::span<FutureCore* const> states, Until until) {
  bool all_ready = true;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool ready = !states[i] || states[i]->ready();
    const bool failed = !states[i] || states[i]->failed();
    if (until == Until::first ? ready : failed && until == Until::all) return i;
    all_ready &= ready;
  }
  if (until != Until::first && all_ready) return states.size();
  return std::nullopt;
}

}  // namespace

Error too_late(std::size_t futures) {
  return Error(Errc::timeout, "waiting for " + std::to_string(futures) + " futures took too long");
}

Result<std::optional<std::size_t>> wait_several(std::span<FutureCore* const> states, Until until,
                                                std::optional<base::Duration> timeout) {
  if (const auto index = decided(states, until)) {
    end_wait_at_once();
    return index;
  }
  const auto first_open = std::find_if(states.begin(), states.end(), [](FutureCore* s) { return s && !s->ready(); });
  if (first_open == states.end()) return decided(states, until);  // the last one came meanwhile
  FutureCore& open = **first_open;
  if (const Result<void> may = check_may_wait(); !may) return may.error();
  const base::WaitPermit permit;
  if (!permit) return permit.error();
  std::shared_ptr<Caller> keep;
  base::Executor* const executor = open.executor(keep);
  const base::TimePoint now = executor ? executor->clock().now() : base::SteadyClock().now();
  const base::TimePoint deadline = timeout && *timeout < base::kNever - now ? now + *timeout : base::kNever;
  const TurnPause pause;
  const NoUserCode reading;
  const auto wait_with = [&](base::WaitPoint& point, auto&& wait) {
    Counter counter(states.size(), until, point);
    std::vector<CountedWaiter> waiters(states.size(), CountedWaiter(counter));
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!states[i] || !states[i]->add_waiter(waiters[i])) counter.completed(!states[i] || states[i]->failed());
    }
    wait();
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i]) states[i]->remove_waiter(waiters[i]);
    }
  };
  if (executor) {
    const std::shared_ptr<base::ReadableSource> source = open.source();
    executor->with_wait(
        [&](base::Executor::Wait& wait) { wait_with(wait.point(), [&] { wait.wait(deadline, source.get()); }); });
  } else {
    const base::Continuations::Pause others(nullptr);
    ThreadPoint point;
    wait_with(point, [&] { point.wait(deadline); });
  }
  return decided(states, until);
}

}  // namespace caftan::rpc
