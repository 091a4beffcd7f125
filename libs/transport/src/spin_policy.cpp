#include "caftan/transport/internal/spin_policy.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace caftan::transport {

namespace {

// What a short wait sets the limit to, at least: a spin that is lost by little costs a sleep, after which waits look
// long.
constexpr base::Duration kRoomForDelay = std::chrono::microseconds(20);
constexpr base::Duration kShortest = std::chrono::microseconds(2);  // halved limits below are 0
constexpr std::uint32_t kWaitsPerTrial = 64;
// Another program keeps a core for a slice of a millisecond and more. Interrupts of a virtual machine take up to 100
// us, and threads of the kernel, which no spin disturbs, less than that.
constexpr base::Duration kGap = std::chrono::microseconds(400);
constexpr base::Duration kGapsTogether = std::chrono::milliseconds(100);
constexpr base::Duration kCrowded = std::chrono::milliseconds(100);
constexpr base::Duration kLongestCrowded = std::chrono::seconds(10);
constexpr std::uint32_t kCrowdedLooks = 2;  // one may meet a thread of this process that runs for a moment

}  // namespace

std::uint64_t count_lost_cores() noexcept {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return static_cast<std::uint64_t>(used.ru_nivcsw);
}

base::Duration SpinPolicy::begin(SpinHabit& habit, Waiter waiter, base::TimePoint now) noexcept {
  if (!is_on() || now < habit.crowded_until || is_crowded(now)) return base::Duration::zero();
  base::Duration limit = options_.learns ? habit.limit : options_.longest;
  if (limit == base::Duration::zero()) {
    if (++habit.waits_asleep % kWaitsPerTrial != 0) return limit;
    limit = options_.longest;
  }
  if (!take_place(waiter)) return base::Duration::zero();
  habit.last_turn = now;
  spins_.fetch_add(1, std::memory_order_relaxed);
  if (!spun_.load(std::memory_order_relaxed)) spun_.store(true, std::memory_order_relaxed);
  return limit;
}

/// Takes a place in the budget.
bool SpinPolicy::take_place(Waiter waiter) noexcept {
  const bool is_caller = waiter == Waiter::caller;
  if (!is_caller && callers_.load(std::memory_order_relaxed) > 0) return false;
  std::atomic<unsigned>& spinning = is_caller ? callers_ : runners_;
  const unsigned most = is_caller ? options_.threads : 1;
  if (spinning.fetch_add(1, std::memory_order_relaxed) < most) return true;
  spinning.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

bool SpinPolicy::go_on(SpinHabit& habit, Waiter waiter, base::TimePoint now) noexcept {
  note_turn(habit, now);
  if (now < habit.crowded_until || is_crowded(now)) return false;
  return waiter == Waiter::caller || callers_.load(std::memory_order_relaxed) == 0;
}

/// Looks for gaps, in which another program had the core of this thread.
void SpinPolicy::note_turn(SpinHabit& habit, base::TimePoint now) const noexcept {
  const base::Duration since = now - habit.last_turn;
  habit.last_turn = now;
  if (since <= kGap) return;
  const std::uint64_t lost = lost_cores_();
  if (lost == habit.lost_cores) return;
  habit.lost_cores = lost;
  const bool is_second = now - habit.last_gap <= kGapsTogether;
  habit.last_gap = now;
  if (!is_second) return;
  const bool is_first_time = now - habit.crowded_until > kLongestCrowded;
  habit.crowded_for = is_first_time ? kCrowded : std::clamp(2 * habit.crowded_for, kCrowded, kLongestCrowded);
  habit.crowded_until = now + habit.crowded_for;
}

void SpinPolicy::end(Waiter waiter, bool won) noexcept {
  (waiter == Waiter::caller ? callers_ : runners_).fetch_sub(1, std::memory_order_relaxed);
  if (won) won_.fetch_add(1, std::memory_order_relaxed);
}

void SpinPolicy::learn(SpinHabit& habit, base::Duration took) const noexcept {
  if (!options_.learns) return;  // its limit may be below what a short wait sets
  if (took < options_.longest) {
    habit.limit = std::clamp(2 * took, kRoomForDelay, options_.longest);
  } else {
    habit.limit /= 2;
    if (habit.limit < kShortest) habit.limit = base::Duration::zero();
  }
}

bool SpinPolicy::wants_look() noexcept {
  if (!spun_.load(std::memory_order_relaxed) || is_looking_.load(std::memory_order_relaxed)) return false;
  return !is_looking_.exchange(true);
}

bool SpinPolicy::look(std::uint32_t runnable, base::TimePoint now) noexcept {
  crowded_looks_ = runnable > options_.cores ? crowded_looks_ + 1 : 0;
  if (crowded_looks_ >= kCrowdedLooks) {
    crowded_until_.store((now + kCrowded).time_since_epoch().count(), std::memory_order_relaxed);
  }
  if (spun_.exchange(false)) return true;
  is_looking_ = false;
  return false;
}

}  // namespace caftan::transport
