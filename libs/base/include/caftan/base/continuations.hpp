/// `Continuations`: what a thread has to run because a future got its result. They run one after the other, never one
/// inside another, so that chains and loops of any length need the stack of one (CALL-14).
#pragma once

#include <cstddef>
#include <vector>

#include "caftan/base/task.hpp"

namespace caftan {

class Executor;

/// One per thread while it runs a continuation; lives on that thread's stack.
class Continuations {
 public:
  /// Runs `task` on this thread: at once, or, inside of another continuation, when that one has returned. The task must
  /// not throw.
  static void run(Task task);

  /// Made by whatever blocks the thread: continuations that stand behind the blocked one go to `executor`, or run here
  /// and now without one. What this thread runs while it waits is not inside of the blocked continuation.
  class Pause {
   public:
    explicit Pause(Executor* executor);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Continuations* const paused_;
  };

 private:
  bool empty() const noexcept { return next_ == tasks_.size(); }
  Task take();

  static thread_local constinit Continuations* current_;
  std::vector<Task> tasks_;  // those before next_ are taken
  std::size_t next_ = 0;
};

}  // namespace caftan
