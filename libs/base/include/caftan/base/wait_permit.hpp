/// `WaitPermit`: what user code needs to wait on a runner, so that never too many runners wait at the same time.
#pragma once

#include "caftan/base/error.hpp"
#include "caftan/base/task.hpp"

namespace caftan {

/// The executor of the current thread as somebody who waits sees it.
class RunnerLimit {
 public:
  /// Returns false when all waits that there may be at the same time are under way.
  virtual bool begin_wait() noexcept = 0;
  virtual void end_wait() noexcept = 0;
  /// Runs `call`, now or, from a task of its own, when enough waits are left for the calls that are nested deeper: only
  /// these can end its own wait.
  /// @param depth  calls that wait for this one, directly or not
  virtual void run_call(unsigned depth, Task call) = 0;
  /// Returns what a wait without permit answers: overloaded.
  virtual Error too_many_wait() const = 0;

  /// Returns null on threads that are no runners, and where nothing limits waits.
  static RunnerLimit* current() noexcept;
  static void set_current(RunnerLimit* limit) noexcept;

 protected:
  ~RunnerLimit() = default;
};

/// Taken before the turn of the running object is given back, and kept until it is here again: a wait that has begun
/// is never refused. Waits that cannot fail (a strand's turn in a backward pass, the end of a worker) take none.
/// Threads: made and ended on the one that waits.
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

}  // namespace caftan
