/// Where work runs and how a thread waits: the interface that the libraries see. `libs/transport` implements it twice:
/// ThreadedExecutor has threads that poll sockets; SteppedExecutor, for tests, runs one task a step in a seeded order.
#pragma once

#include "caftan/base/clock.hpp"
#include "caftan/base/continuations.hpp"
#include "caftan/base/task.hpp"

namespace caftan::base {

/// An event that a blocked thread waits for; the object lives on the stack of that thread. Code that fulfils it calls
/// `notify` once, under the lock that guards the registration, so `notify` never reaches a destroyed WaitPoint.
class WaitPoint {
 public:
  virtual ~WaitPoint() = default;
  /// Threads: any. Does not block.
  virtual void notify() noexcept = 0;
};

/// A source of frames that a waiting thread may read itself instead of sleeping (a session's channel).
class ReadableSource {
 public:
  virtual ~ReadableSource() = default;
};

/// Marks its thread, while the object lives, as running user code, which may take any time. Then the executor leaves
/// nothing for the end of the task: a posted task wakes an idle runner; bytes are written by another runner or at once.
class UserCode {
 public:
  UserCode() noexcept { ++depth_; }
  ~UserCode() { --depth_; }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

  /// Returns whether the calling thread runs user code.
  static bool runs_here() noexcept { return depth_ != 0; }

 private:
  static thread_local constinit unsigned depth_;
};

/// Where tasks run and timers go off: threads in a run, a stepped queue in tests.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Runs `task` soon on a runner. Tasks must not throw. Threads: any.
  virtual void post(Task task) = 0;

  /// Runs `task` on a runner at or soon after `when` (resolution 1 ms). Cannot be cancelled: the task must check
  /// whether its work is still needed. Threads: any.
  virtual void post_at(TimePoint when, Task task) = 0;

  /// Returns the clock that timers and deadlines are measured by. Threads: any.
  virtual const Clock& clock() const noexcept = 0;

  /// Returns whether the calling thread reads frames inside a `wait`. Such a thread must post user code, never run it.
  virtual bool inside_reading_wait() const noexcept = 0;

  /// Suppresses wake-ups for tasks posted by this thread: as a runner, it takes them when its current task ends. Keep
  /// the scope short. Has no effect on a thread that is not a runner, nor inside user code.
  class DeferWakeups {
   public:
    explicit DeferWakeups(Executor& executor) noexcept : executor_(executor), before_(executor.defer_wakeups(true)) {}
    ~DeferWakeups() { executor_.defer_wakeups(before_); }
    DeferWakeups(const DeferWakeups&) = delete;
    DeferWakeups& operator=(const DeferWakeups&) = delete;

   private:
    Executor& executor_;
    const bool before_;
  };

  /// One blocking wait. The constructor registers nothing: the caller gives `point()` to the code that notifies, then
  /// calls `wait`. Another thread replaces a runner that waits, so every wait can end even with a single runner.
  class Wait {
   public:
    virtual ~Wait() = default;
    /// Returns what ends this wait; valid as long as the Wait.
    virtual WaitPoint& point() noexcept = 0;
    /// Returns true if notified, false if `deadline` passed first. Meanwhile the thread may read frames of `source`,
    /// which saves a hand-over between threads. Never runs user code on this stack.
    virtual bool wait(TimePoint deadline, ReadableSource* source) = 0;
  };
  /// Calls `body(wait)` with a Wait that lives on this stack.
  template <class Body>
  auto with_wait(Body&& body) {
    const Continuations::Pause pause(this);
    alignas(16) std::byte room[kWaitSize];
    struct Destroy {
      Wait* wait;
      ~Destroy() { wait->~Wait(); }
    } wait{make_wait(room)};
    return body(*wait.wait);
  }

 protected:
  /// Sets whether wake-ups for posts of this thread are suppressed (DeferWakeups). Returns the previous setting.
  virtual bool defer_wakeups(bool) noexcept { return false; }
  static constexpr std::size_t kWaitSize = 128;
  /// Constructs the implementation's Wait in `room` (kWaitSize bytes, 16-aligned).
  virtual Wait* make_wait(std::byte* room) = 0;
};

}  // namespace caftan::base
