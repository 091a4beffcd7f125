/// The signals by which people end a run, as something to wait for.
#pragma once

#include <signal.h>

namespace caftan::actors {

/// Takes SIGINT, SIGTERM and SIGHUP out of their normal course, except those that were ignored when the program was
/// started (RN-6). They stay blocked for the calling thread and for the threads that it starts; where SignalsOpen
/// stands they are noted. SIGPIPE and SIGXFSZ are ignored meanwhile: a write that fails says why. At its end, signals
/// that come later change nothing once, and then take their default action. Threads: one; at most one object at a time
/// in a process, as signals are the process's.
class SignalSource {
 public:
  SignalSource();
  ~SignalSource();
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  /// Returns a descriptor that is readable while a signal was noted and not taken.
  int fd() const noexcept { return fd_; }
  bool take();

 private:
  int fd_ = -1;
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  struct sigaction size_before_ {};
};

/// Lets the signals of a SignalSource through while this thread may block: they interrupt its system call.
class SignalsOpen {
 public:
  SignalsOpen();
  ~SignalsOpen();
  SignalsOpen(const SignalsOpen&) = delete;
  SignalsOpen& operator=(const SignalsOpen&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace caftan::actors
