/// What happens when code of a role ends the process that it shares with the launcher.
#pragma once

#include <optional>

namespace caftan::actors {

/// While an object of this class lives, exit() on another thread than the one that made the object does not end the
/// process: the calling thread stops there for ever, and `take` returns the status (RN-9). _exit() and quick_exit() end
/// the process as ever. Threads: one; at most one object at a time in a process, as the exit handlers belong to the
/// process.
class ExitWatch {
 public:
  ExitWatch();
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

  /// Returns a descriptor that is readable while an exit status was noted and not taken.
  int fd() const noexcept { return fd_; }
  std::optional<int> take();

 private:
  int fd_;
};

}  // namespace caftan::actors
