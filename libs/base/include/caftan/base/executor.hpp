/// Where work runs and how a thread waits: the interface the libraries see. `libs/transport` implements it with threads
/// that poll sockets (ThreadedExecutor) and with a seeded, steppable one for tests (SteppedExecutor).
#pragma once

#include "caftan/base/clock.hpp"
#include "caftan/base/continuations.hpp"
#include "caftan/base/task.hpp"

namespace caftan {

/// Something a blocked thread waits for. Lives on the waiter's stack; whoever fulfils it calls `notify` once, under
/// the lock that also guards its registration, so that it is never notified after it is gone.
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

/// While one lives, its thread runs user code. That may go on for any time: what is left for the end of the task, the
/// next task or bytes to write, is left to another thread instead.
class UserCode {
 public:
  UserCode() noexcept { ++depth_; }
  ~UserCode() { --depth_; }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

  static bool runs_here() noexcept { return depth_ != 0; }

 private:
  static thread_local constinit unsigned depth_;
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Runs `task` soon on a runner. Tasks must not throw. Threads: any.
  virtual void post(Task task) = 0;

  /// Runs `task` on a runner at or soon after `when` (resolution 1 ms). Cannot be cancelled: the task must look whether
  /// it still matters. Threads: any.
  virtual void post_at(TimePoint when, Task task) = 0;

  virtual const Clock& clock() const noexcept = 0;

  /// Returns whether the calling thread is reading frames inside a `wait`: user code must be posted then, never run.
  virtual bool reads_for_wait() const noexcept = 0;

  /// While one lives, what its thread posts wakes nobody: this runner takes it when its task ends, which must be soon.
  /// On threads that are no runners, and inside user code, it does nothing.
  class QuietPosts {
   public:
    explicit QuietPosts(Executor& executor) noexcept : executor_(executor), before_(executor.post_quietly(true)) {}
    ~QuietPosts() { executor_.post_quietly(before_); }
    QuietPosts(const QuietPosts&) = delete;
    QuietPosts& operator=(const QuietPosts&) = delete;

   private:
    Executor& executor_;
    const bool before_;
  };

  /// One blocking wait. Constructing registers nothing: the caller hands `point()` to whoever will notify, then calls
  /// `wait`. A runner that waits is replaced by another one, so that every wait can end with a single runner.
  class Wait {
   public:
    virtual ~Wait() = default;
    virtual WaitPoint& point() noexcept = 0;
    /// Returns true when notified, false when `deadline` passed first. Reads frames of `source` meanwhile when that
    /// saves a hand-over; never runs user code on this stack.
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
  /// Returns what was set before.
  virtual bool post_quietly(bool) noexcept { return false; }
  static constexpr std::size_t kWaitSize = 128;
  /// Constructs the implementation's Wait in `room` (kWaitSize bytes, 16-aligned).
  virtual Wait* make_wait(std::byte* room) = 0;
};

}  // namespace caftan
