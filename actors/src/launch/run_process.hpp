/// A process of a run as the launcher sees it: a process that the launcher has started, or, for placement
/// "one_process", the launcher's own.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "caftan/run/internal/supervisor.hpp"
#include "launch/control_socket.hpp"
#include "role/worker_set.hpp"

namespace caftan::actors {

/// Threads: one.
class RunProcess {
 public:
  virtual ~RunProcess() = default;
  /// Returns 0 for the launcher's own process.
  virtual pid_t pid() const noexcept = 0;
  /// A command that cannot be delivered is dropped: the process has ended, or will be killed because it does not read.
  virtual void send(const run::Command& command) = 0;
  /// Ends it at once.
  virtual void kill() = 0;
  /// Appends the descriptors to poll until there is news of this process.
  /// @param events  whether events count as news; otherwise only the end of the process does, which a LocalProcess does
  /// not show
  virtual void add_to(std::vector<pollfd>& waited, bool events) const = 0;
  /// Returns the next event, nothing if there is none now.
  virtual std::optional<run::Event> next_event() = 0;
  /// Returns how the process ended, once; nothing while it runs. Its last events can be read afterwards.
  virtual std::optional<run::Death> take_death() = 0;
};

/// What a copy of this process does as the worker process of that name. It does not return.
using WorkerMain = std::function<void(const std::string& name)>;

struct ChildOptions {
  const WorkerMain& worker_main;
  std::string executable{};  ///< path of this program
  std::string name{};        ///< shown in lists of processes
  std::filesystem::path log{};
  pid_t group = 0;    ///< process group to join; 0 = the process leads a new group
  int log_pipe = -1;  ///< takes the output in place of the log; -1 = none
};

/// The argument that makes a program a worker process, and the descriptor on which it finds its ControlSocket.
inline constexpr const char* kWorkerArgument = "caftan-worker";
inline constexpr int kControlDescriptor = 3;

/// Starts a worker process: its standard input is empty, its output goes to the log, it is killed when this thread
/// ends, and it inherits no descriptor but its control socket. The process is a copy of this one, which has loaded
/// libtorch already; where this one has further threads, whose locks a copy would keep for ever, the program is started
/// again. Errors: io_error.
class ChildProcess final : public RunProcess {
 public:
  static Result<std::unique_ptr<ChildProcess>> start(const ChildOptions& options);
  /// Kills and waits for what still runs.
  ~ChildProcess() override;

  pid_t pid() const noexcept override { return pid_; }
  void send(const run::Command& command) override;
  void kill() override;
  void add_to(std::vector<pollfd>& waited, bool events) const override;
  std::optional<run::Event> next_event() override;
  std::optional<run::Death> take_death() override;

 private:
  ChildProcess(pid_t pid, int pidfd, ControlSocket socket) : pid_(pid), pidfd_(pidfd), socket_(std::move(socket)) {}

  const pid_t pid_;
  int pidfd_;
  ControlSocket socket_;
  bool talks_ = true;
  bool ended_ = false;
};

/// A run process that is the launcher's own: the workers run on its threads.
class LocalProcess final : public RunProcess {
 public:
  /// @param options  their sink is set here. Errors: io_error.
  static Result<std::unique_ptr<LocalProcess>> start(WorkerSetOptions options);
  ~LocalProcess() override;

  pid_t pid() const noexcept override { return 0; }
  void send(const run::Command& command) override;
  /// Lets go of workers that do not end; the launcher exits the process then.
  void kill() override;
  void add_to(std::vector<pollfd>& waited, bool events) const override;
  std::optional<run::Event> next_event() override;
  std::optional<run::Death> take_death() override;

 private:
  struct Queue;
  explicit LocalProcess(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}

  std::shared_ptr<Queue> queue_;
  std::unique_ptr<WorkerSet> workers_;
  std::thread thread_;
  bool abandoned_ = false;
  bool death_taken_ = false;
};

}  // namespace caftan::actors
