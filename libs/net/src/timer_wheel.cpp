#include "caftan/net/internal/timer_wheel.hpp"

#include <algorithm>

namespace caftan::net {

namespace {

constexpr std::uint64_t kTickNanoseconds = static_cast<std::uint64_t>(TimerWheel::kTick.count());

}  // namespace

TimerWheel::TimerWheel(base::TimePoint start) noexcept : start_(start) {
  for (Timer& head : late_heads_) head.prev_ = head.next_ = &head;
}

/// Returns the head of the list of timers of a bucket. The heads of a level are allocated when the first is needed.
Timer& TimerWheel::head(std::uint32_t bucket) {
  if (bucket >= kDue) return late_heads_[bucket - kDue];
  std::unique_ptr<Timer[]>& level = heads_[bucket / kSlots];
  if (!level) {
    level = std::make_unique<Timer[]>(kSlots);
    for (unsigned slot = 0; slot < kSlots; ++slot) level[slot].prev_ = level[slot].next_ = &level[slot];
  }
  return level[bucket % kSlots];
}

std::uint64_t TimerWheel::floor_tick(base::TimePoint at) const noexcept {
  if (at <= start_) return 0;
  // Unsigned, so that kNever minus a start before the epoch does not overflow.
  return (static_cast<std::uint64_t>(at.time_since_epoch().count()) -
          static_cast<std::uint64_t>(start_.time_since_epoch().count())) /
         kTickNanoseconds;
}

std::uint64_t TimerWheel::ceil_tick(base::TimePoint at) const noexcept {
  const std::uint64_t tick = floor_tick(at);
  return at > start_ && time_of(tick) < at ? tick + 1 : tick;
}

base::TimePoint TimerWheel::time_of(std::uint64_t tick) const noexcept {
  const auto room = static_cast<std::uint64_t>(base::kNever.time_since_epoch().count()) -
                    static_cast<std::uint64_t>(start_.time_since_epoch().count());
  if (tick > room / kTickNanoseconds) return base::kNever;
  return start_ + base::Duration(static_cast<base::Duration::rep>(tick * kTickNanoseconds));
}

void TimerWheel::insert(Timer& timer, base::TimePoint deadline) {
  timer.tick_ = ceil_tick(deadline);
  place(timer);
  ++size_;
}

void TimerWheel::cancel(Timer& timer) noexcept {
  if (!timer.is_armed()) return;
  unlink(timer);
  --size_;
}

// TW-2: a timer sits at the highest level in which its tick and the current one differ. So all timers of one level
// share the current tick's higher digits, everything at a lower level is earlier, and no slot behind the current one is
// used.
void TimerWheel::place(Timer& timer) {
  if (timer.tick_ <= current_) return append(kDue, timer);
  const auto level = static_cast<unsigned>(std::bit_width(timer.tick_ ^ current_) - 1) / kSlotBits;
  const auto slot = static_cast<unsigned>(timer.tick_ >> (level * kSlotBits)) % kSlots;
  append(level * kSlots + slot, timer);
  used_[level] |= std::uint64_t{1} << slot;
}

void TimerWheel::append(std::uint32_t bucket, Timer& timer) {
  Timer& first = head(bucket);
  timer.bucket_ = bucket;
  timer.next_ = &first;
  timer.prev_ = first.prev_;
  first.prev_->next_ = &timer;
  first.prev_ = &timer;
}

void TimerWheel::unlink(Timer& timer) noexcept {
  timer.prev_->next_ = timer.next_;
  timer.next_->prev_ = timer.prev_;
  // Previous and next are both the head: the slot is empty now.
  if (timer.bucket_ < kDue && timer.next_ == timer.prev_) {
    used_[timer.bucket_ / kSlots] &= ~(std::uint64_t{1} << (timer.bucket_ % kSlots));
  }
  timer.prev_ = timer.next_ = nullptr;
}

TimerWheel::Event TimerWheel::next_event() const noexcept {
  for (unsigned level = 0; level < kLevels; ++level) {
    if (used_[level] == 0) continue;
    const auto slot = static_cast<std::uint64_t>(std::countr_zero(used_[level]));
    const unsigned shift = level * kSlotBits;
    return {((current_ >> shift >> kSlotBits << kSlotBits) | slot) << shift, level};
  }
  return {0, kLevels};
}

base::TimePoint TimerWheel::next_expiry() const noexcept {
  if (late_heads_[0].next_ != &late_heads_[0]) return time_of(current_);
  const Event event = next_event();
  return event.level == kLevels ? base::kNever : time_of(event.tick);
}

void TimerWheel::spread(std::uint32_t bucket) noexcept {
  const Timer& first = head(bucket);
  while (first.next_ != &first) {
    Timer& timer = *first.next_;
    unlink(timer);
    if (timer.tick_ <= current_) {
      append(kExpired, timer);
    } else {
      place(timer);
    }
  }
}

void TimerWheel::collect(std::uint64_t target) noexcept {
  spread(kDue);
  for (;;) {
    const Event event = next_event();
    if (event.level == kLevels || event.tick > target) break;
    current_ = event.tick;
    spread(event.level * kSlots + static_cast<std::uint32_t>(event.tick >> (event.level * kSlotBits)) % kSlots);
  }
  current_ = std::max(current_, target);
}

Timer* TimerWheel::pop_expired() noexcept {
  const Timer& first = late_heads_[1];
  if (first.next_ == &first) return nullptr;
  Timer* timer = first.next_;
  unlink(*timer);
  --size_;
  return timer;
}

}  // namespace caftan::net
