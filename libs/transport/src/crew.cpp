#include "caftan/transport/internal/crew.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace caftan::transport {

namespace {
constexpr unsigned kDepthsThatKeep = 4;    // calls that are nested deeper than this leave no permits to deeper ones
constexpr unsigned kKeptForEachDepth = 4;  // permits
}  // namespace

void Crew::publish() noexcept { seen_.engaged.store(permits_ + running_, std::memory_order_relaxed); }

void Crew::thread_added() noexcept {
  ++threads_;
  ++running_;
  publish();
}

void Crew::park() noexcept {
  --running_;
  publish();
  ++parked_;
}

void Crew::unparked() noexcept {
  --parked_;
  ++running_;
  publish();
  if (unpark_ > 0) --unpark_;
}

void Crew::enter_blocked() noexcept {
  --running_;
  publish();
}

void Crew::leave_blocked() noexcept {
  ++running_;
  publish();
}

Crew::Replacement Crew::replace() noexcept {
  if (running_ >= runners_) return Replacement::none;
  if (parked_ > unpark_) {
    ++unpark_;
    return Replacement::parked;
  }
  if (running_ == 0 && unpark_ == 0) return Replacement::last_thread;
  return threads_ < max_threads_ ? Replacement::thread : Replacement::none;
}

void Crew::begin_wait() noexcept {
  ++permits_;
  publish();
}

void Crew::end_wait() noexcept {
  --permits_;
  publish();
}

/// Returns how many other threads may wait or run where a call of that depth begins (CALL-16). Each depth but the
/// greatest leaves some permits to deeper calls. The deepest call that exists waits for no call that is held back, so
/// it ends, and after it all others.
unsigned Crew::most_engaged(unsigned depth) const noexcept {
  const unsigned most = max_threads_ - 1;
  const unsigned step = std::min(kKeptForEachDepth, most / 8);
  const unsigned kept = depth < kDepthsThatKeep ? (kDepthsThatKeep - depth) * step : 0;
  return kept == 0 ? ~0U : most - kept - 1;
}

bool Crew::may_begin_unasked(unsigned depth) const noexcept {
  const unsigned most = most_engaged(depth);
  return most == ~0U || (!seen_.holds && seen_.engaged <= most);
}

/// A running thread may wait next, so it counts as a waiting one; an idle thread does not count.
bool Crew::may_begin(unsigned depth) const noexcept {
  const unsigned most = most_engaged(depth);
  return (held_.empty() || depth > held_.begin()->first) && permits_ + running_ - idle_ - 1 <= most;
}

void Crew::hold(unsigned depth, base::Task&& call) {
  held_[depth].push_back(std::move(call));
  seen_.holds = true;  // the runner that holds the call back reads this flag when its task has ended
}

/// A held call may be taken even without a permit left, because it may never wait.
/// @param others  threads that wait or run, without the one that would take the call
bool Crew::may_take_held(unsigned others) const noexcept {
  return !held_.empty() && (permits_ + 1 >= max_threads_ || others <= most_engaged(held_.begin()->first));
}

base::Task Crew::take_held() {
  const auto deepest = held_.begin();
  base::Task call = std::move(deepest->second.front());
  deepest->second.pop_front();
  if (deepest->second.empty()) held_.erase(deepest);
  seen_.holds = !held_.empty();
  return call;
}

Error Crew::too_many_wait() const {
  if (!has_permit()) {
    const std::string limit = std::to_string(max_threads_);
    return Error(Errc::overloaded, std::to_string(max_threads_ - 1) +
                                       " runners wait already; the limit is ThreadedExecutor::Options::max_threads = " +
                                       limit + ", one of them stays free");
  }
  return Error(Errc::overloaded, std::to_string(permits_) + " of " + std::to_string(threads_) +
                                     " runners wait already, one stays free, and the system gives no more threads (a "
                                     "limit of processes of the user or the container)");
}

}  // namespace caftan::transport
