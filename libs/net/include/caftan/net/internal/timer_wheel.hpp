/// A hierarchical timer wheel: insert and cancel in O(1), expiry in order of time. A level takes memory when its first
/// timer comes, so an unused wheel is small; a level that was in use never allocates again. Timers are intrusive:
/// derive from `Timer`, insert it, and get it back in `advance` when its deadline has passed. Invariants TW-1 to TW-5:
/// docs/protocols/session.md.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "caftan/base/clock.hpp"

namespace caftan::net {

class TimerWheel;

/// One timer. Its owner derives from it and keeps it in place while it is armed; destroying an armed timer is an error
/// of the owner (cancel it first).
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  bool is_armed() const noexcept { return next_ != nullptr; }

 private:
  friend class TimerWheel;
  Timer* prev_ = nullptr;
  Timer* next_ = nullptr;
  std::uint64_t tick_ = 0;
  std::uint32_t bucket_ = 0;
};

/// Ticks of 1 ms in 8 levels of 64 slots. That covers every TimePoint, so there is no overflow list, and one machine
/// word per level says which slots are in use, so that idle time costs nothing however long it was.
/// Threads: none of its own, and no lock; the owner serializes all calls.
class TimerWheel {
 public:
  static constexpr base::Duration kTick = std::chrono::milliseconds(1);

  /// @param start  deadlines before this time are not distinguished: such timers fire at the next `advance`
  explicit TimerWheel(base::TimePoint start) noexcept;
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  /// Arms `timer`. It fires in the first `advance(now)` with now >= deadline, rounded up to a whole tick.
  /// Precondition: the timer is not armed. Throws std::bad_alloc, and changes nothing, without memory for its level.
  void insert(Timer& timer, base::TimePoint deadline);

  /// Disarms `timer`; does nothing if it is not armed.
  void cancel(Timer& timer) noexcept;

  /// Disarms each timer whose deadline has passed and calls `fire(timer)`, in order of deadline (per tick: in order of
  /// insertion). `fire` may insert and cancel any timer, this one included, and may destroy it; a timer it inserts with
  /// a deadline already past fires in the next `advance`. Time that runs backwards is ignored. Timers of a coarse level
  /// move to finer ones here: without the 2.5 KiB of a level that was never in use the process ends.
  template <class Fire>
  void advance(base::TimePoint now, Fire&& fire) {
    collect(floor_tick(now));
    while (Timer* timer = pop_expired()) fire(*timer);
  }

  /// Returns when `advance` must be called next, or kNever. It may be earlier than the first deadline (a slot of a
  /// coarse level must be spread first; at most 7 times per timer), never later than its tick.
  base::TimePoint next_expiry() const noexcept;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  static constexpr unsigned kSlotBits = 6;
  static constexpr unsigned kSlots = 1U << kSlotBits;
  static constexpr unsigned kLevels = 8;
  static constexpr std::uint32_t kDue = kLevels * kSlots;  ///< inserted too late for any slot
  static constexpr std::uint32_t kExpired = kDue + 1;      ///< expired in the `advance` that is running

  Timer& head(std::uint32_t bucket);
  std::uint64_t floor_tick(base::TimePoint at) const noexcept;
  std::uint64_t ceil_tick(base::TimePoint at) const noexcept;
  base::TimePoint time_of(std::uint64_t tick) const noexcept;
  /// The next tick at which a slot must be looked at, and the slot's level; level = kLevels: there is none.
  struct Event {
    std::uint64_t tick;
    unsigned level;
  };
  Event next_event() const noexcept;
  void collect(std::uint64_t target) noexcept;
  void spread(std::uint32_t bucket) noexcept;
  void place(Timer& timer);
  void append(std::uint32_t bucket, Timer& timer);
  void unlink(Timer& timer) noexcept;
  Timer* pop_expired() noexcept;

  base::TimePoint start_;
  std::uint64_t current_ = 0;  ///< every tick up to this one has been collected
  std::size_t size_ = 0;
  std::array<std::uint64_t, kLevels> used_{};
  // Circular lists.
  std::array<std::unique_ptr<Timer[]>, kLevels> heads_;  ///< of the slots of each level, null until used
  std::array<Timer, 2> late_heads_;                      ///< kDue, kExpired
};

}  // namespace caftan::net
