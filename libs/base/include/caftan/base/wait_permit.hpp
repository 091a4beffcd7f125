/// `WaitPermit`: user code takes one before it waits on a runner. The number of permits limits how many runners wait.
#pragma once

#include "caftan/base/error.hpp"
#include "caftan/base/task.hpp"

namespace caftan::base {

/// The part of an executor that limits how many of its runners wait at the same time.
class RunnerLimit {
 public:
  /// Reserves one wait. Returns false, and reserves nothing, if no further wait is allowed now.
  virtual bool begin_wait() noexcept = 0;
  /// Gives back what a successful `begin_wait` has reserved.
  virtual void end_wait() noexcept = 0;
  /// Returns whether a call may begin on this thread now, with enough waits left for calls that are nested deeper and
  /// for which this call may wait. If this returns false, the caller passes the call to `hold_call`.
  /// @param depth  how many calls wait for this one, directly or indirectly
  virtual bool may_begin(unsigned depth) noexcept = 0;
  /// Keeps `call`, and runs it in a task of its own once enough waits are left: the deepest calls first, calls of one
  /// depth in the order of this method. The calling task must end right after.
  virtual void hold_call(unsigned depth, Task call) = 0;
  /// Returns the error of a wait that got no permit: `overloaded`, with the limit that was reached.
  virtual Error too_many_wait() const = 0;

  /// Returns the limit of the calling thread; null if the thread is not a runner or its executor limits no waits.
  static RunnerLimit* current() noexcept;
  /// Sets the limit of the calling thread; null = none. Called by the executor.
  static void set_current(RunnerLimit* limit) noexcept;

 protected:
  ~RunnerLimit() = default;
};

/// Permission for one wait. User code takes it before its object gives its turn back, and keeps it until the object has
/// its turn again, so a wait that has begun is never refused. Waits that cannot fail (for a strand's turn in a backward
/// pass, for the end of a worker) take no permit. Threads: constructed and destroyed on the thread that waits.
class WaitPermit {
 public:
  WaitPermit() noexcept : limit_(RunnerLimit::current()), granted_(!limit_ || limit_->begin_wait()) {}
  ~WaitPermit() {
    if (limit_ && granted_) limit_->end_wait();
  }
  WaitPermit(const WaitPermit&) = delete;
  WaitPermit& operator=(const WaitPermit&) = delete;

  explicit operator bool() const noexcept { return granted_; }
  /// Precondition: not granted.
  Error error() const { return limit_->too_many_wait(); }

 private:
  RunnerLimit* const limit_;
  const bool granted_;
};

}  // namespace caftan::base
