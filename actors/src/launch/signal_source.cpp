#include "launch/signal_source.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace caftan::actors {
namespace {

constexpr std::array<int, 3> kEnding{SIGINT, SIGTERM, SIGHUP};
constexpr std::array<int, 2> kOfWrites{SIGPIPE, SIGXFSZ};

// The descriptor that `note` writes to: a signal handler gets only the signal's number.
std::atomic<int> noted_at{-1};

void note(int) {
  const int error = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(noted_at.load(), &one, sizeof one);
  errno = error;
}

void pass(int) {}

bool is_ours(int number) {
  struct sigaction current {};
  return ::sigaction(number, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == note;
}

}  // namespace

SignalSource::SignalSource() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {
  noted_at = fd_;
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int number : kEnding) {
    struct sigaction current {};
    ::sigaction(number, nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == SIG_IGN) continue;
    ::sigaddset(&taken, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &taken, &before_);
  for (const int number : kEnding) {
    if (::sigismember(&taken, number) != 1) continue;
    struct sigaction action {};
    action.sa_handler = note;  // without SA_RESTART, so that a signal ends a write that waits for room
    ::sigaction(number, &action, nullptr);
  }
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(kOfWrites[0], &ignored, &pipe_before_);
  ::sigaction(kOfWrites[1], &ignored, &size_before_);
}

SignalSource::~SignalSource() {
  for (const int number : kEnding) {
    if (!is_ours(number)) continue;
    struct sigaction action {};
    action.sa_handler = pass;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    ::sigaction(number, &action, nullptr);
  }
  noted_at = -1;
  if (fd_ >= 0) ::close(fd_);
  ::sigaction(kOfWrites[0], &pipe_before_, nullptr);
  ::sigaction(kOfWrites[1], &size_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool SignalSource::take() {
  std::uint64_t count = 0;
  return ::read(fd_, &count, sizeof count) == static_cast<ssize_t>(sizeof count);
}

SignalsOpen::SignalsOpen() {
  sigset_t open;
  ::sigemptyset(&open);
  for (const int number : kEnding) {
    if (is_ours(number)) ::sigaddset(&open, number);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &open, &before_);
}

SignalsOpen::~SignalsOpen() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace caftan::actors
