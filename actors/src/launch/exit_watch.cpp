#include "launch/exit_watch.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace caftan::actors {
namespace {

std::atomic<int> watched_by{-1};
std::atomic<int> exit_status{0};
pthread_t watcher;

/// Exit handler. On any thread but the watcher's, which it lets go on, it notes the exit status and blocks for ever.
void hold(int status, void*) {
  const int fd = watched_by.load();
  if (fd < 0 || ::pthread_equal(::pthread_self(), watcher) != 0) return;
  exit_status = status;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
  for (;;) ::pause();  // the watcher ends the process
}

}  // namespace

ExitWatch::ExitWatch() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  static const int registered = ::on_exit(hold, nullptr);  // once per process: an exit handler cannot be removed
  (void)registered;
  watcher = ::pthread_self();
  watched_by = fd_;
}

ExitWatch::~ExitWatch() {
  watched_by = -1;
  if (fd_ >= 0) ::close(fd_);
}

std::optional<int> ExitWatch::take() {
  std::uint64_t count = 0;
  if (::read(fd_, &count, sizeof count) != static_cast<ssize_t>(sizeof count)) return std::nullopt;
  return exit_status.load();
}

}  // namespace caftan::actors
