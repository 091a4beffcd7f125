/// `Continuations`: the functions that a thread has to run because a future got its result. A thread runs one after the
/// other, never one inside another, so a chain or loop of any length needs the stack of one continuation (CALL-14).
#pragma once

#include <cstddef>
#include <vector>

#include "caftan/base/task.hpp"

namespace caftan::base {

class Executor;

/// The queue of one thread. Exists while the thread runs a continuation, and lives on the stack of that thread.
class Continuations {
 public:
  /// Runs `task` on this thread: at once, or, if the thread runs a continuation already, after that one and those
  /// queued before (but see Pause). The task must not throw.
  static void run(Task task);

  /// Code that blocks a thread makes a Pause first. The constructor posts queued continuations to `executor`, or runs
  /// them at once if it is null. Until the Pause ends, `run` does not queue behind the blocked continuation.
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
  std::vector<Task> tasks_;  // the tasks before next_ have been taken
  std::size_t next_ = 0;
};

}  // namespace caftan::base
