/// Time as an interface, so that tests can move it by hand.
#pragma once

#include <atomic>
#include <chrono>

namespace caftan::base {

/// A span of time in nanoseconds.
using Duration = std::chrono::nanoseconds;
/// A moment of the steady clock or of a test's manual clock; never wall time.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;
/// Later than any other moment: no deadline.
inline constexpr TimePoint kNever = TimePoint::max();

/// The source of time for the libraries; tests have one that they move.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Threads: any.
  virtual TimePoint now() const noexcept = 0;
};

/// The steady clock of the system.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const noexcept override {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
};

/// A clock that only moves by `advance`. Starts at one hour, so that "now minus something" stays positive.
class ManualClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return TimePoint(Duration(now_.load())); }
  /// Moves the time forward.
  /// Threads: any.
  void advance(Duration by) noexcept { now_ += by.count(); }

 private:
  std::atomic<Duration::rep> now_{std::chrono::duration_cast<Duration>(std::chrono::hours(1)).count()};
};

}  // namespace caftan::base
