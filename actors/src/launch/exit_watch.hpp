/// What happens when code of a role ends the process that it shares with the launcher.
#pragma once

#include <optional>

namespace caftan::actors {

/// While it lives, exit() on another thread than the one that made it does not end the process: that thread stays where
/// it is, and the status can be taken here (RN-9). _exit() and quick_exit() end the process as ever.
/// Threads: one; at most one object at a time in a process, as its exit handlers are the process's.
class ExitWatch {
 public:
  ExitWatch();
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

  /// Readable while a status was not taken.
  int fd() const noexcept { return fd_; }
  std::optional<int> take();

 private:
  int fd_;
};

}  // namespace caftan::actors
