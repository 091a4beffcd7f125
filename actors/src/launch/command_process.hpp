/// A command of this program in a process of its own: one run of a sweep.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/run/internal/death.hpp"
#include "launch/descriptor.hpp"

namespace caftan::actors {

struct CommandOptions {
  std::string executable{};
  std::vector<std::string> arguments{};
  std::filesystem::path log{};  ///< receives the command's standard output and error; an older file is replaced
};

/// The process leads a process group of its own, so that Ctrl-C of a terminal reaches only its parent. Its standard
/// input is empty, and SIGTERM ends it when this thread ends. Threads: one.
class CommandProcess {
 public:
  /// Errors: io_error.
  static Result<std::unique_ptr<CommandProcess>> start(const CommandOptions& options);
  /// Kills the command if it still runs, and waits for its end.
  ~CommandProcess();
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;

  /// Returns a descriptor that is readable once the command has ended.
  int fd() const noexcept { return pidfd_.get(); }
  /// Sends SIGTERM, which does what Ctrl-C does: the first one makes the command end in good order, the second one at
  /// once.
  void interrupt() const;
  /// Returns how the command ended; nothing while it runs.
  std::optional<run::Death> death();

 private:
  CommandProcess(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}

  const pid_t pid_;
  const Descriptor pidfd_;
  std::optional<run::Death> death_;
};

}  // namespace caftan::actors
