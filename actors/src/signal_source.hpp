/// The signals by which people end a run, as something to wait for.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace caftan::actors {

/// Takes the signals that end a run out of their normal course.
class SignalSource {
 public:
  SignalSource() {
    sigset_t ending;
    ::sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending, signal);
    ::sigprocmask(SIG_BLOCK, &ending, &before_);
    fd_ = ::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
    pipe_before_ = ::signal(SIGPIPE, SIG_IGN);  // output that nobody reads is no reason to end
  }
  ~SignalSource() {
    if (fd_ >= 0) ::close(fd_);
    ::signal(SIGPIPE, pipe_before_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  int fd() const noexcept { return fd_; }
  bool take() {
    signalfd_siginfo info{};
    return ::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
  }

 private:
  int fd_ = -1;
  sigset_t before_{};
  void (*pipe_before_)(int) = SIG_DFL;
};

}  // namespace caftan::actors
