/// A host of a run with `run.launcher = "ssh"` as the launcher sees it: the command that runs a relay there, and the
/// processes that the relay has started. Rules: docs/protocols/launchers.md.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/run/internal/relay_messages.hpp"
#include "caftan/run/internal/stream_frames.hpp"
#include "launch/descriptor.hpp"
#include "launch/output_stream.hpp"
#include "launch/run_process.hpp"

namespace caftan::actors {

struct RemoteHostOptions {
  std::string name{};     ///< in the file
  std::string address{};  ///< likewise
  std::vector<std::string> words{};
  run::BeginRelay begin{};
  base::Duration beat{};                        ///< period of the launcher's signs of life
  std::map<int, std::filesystem::path> logs{};  ///< where the log of each process is collected
};

/// Threads: one.
class RemoteHost {
 public:
  /// Starts the command. Errors: io_error (it cannot be started).
  static Result<std::shared_ptr<RemoteHost>> start(RemoteHostOptions options);
  /// Ends the input of the relay, which therefore ends, and kills the command if it does not end soon.
  ~RemoteHost();
  RemoteHost(const RemoteHost&) = delete;
  RemoteHost& operator=(const RemoteHost&) = delete;

  const std::string& name() const noexcept { return options_.name; }
  /// Takes in what has come; leaves it to the stream while too many events wait to be taken.
  void read();
  /// Appends the descriptors to poll until there is news.
  void add_to(std::vector<pollfd>& waited) const;
  /// Returns what the command has written to its standard error since the last call, in lines.
  std::vector<std::string> take_lines() { return std::exchange(lines_, {}); }

  // ---- of one process

  void send(int process, const run::Command& command) { send(run::RelayCommand{process, command}); }
  /// Ends the process at once. If the relay does not confirm its end soon, the whole host is given up.
  void kill(int process);
  /// Returns -1 before the process is there.
  pid_t pid(int process) const { return processes_.at(process).pid; }
  std::optional<run::Event> next_event(int process);
  std::optional<run::Death> take_death(int process);

 private:
  struct Process {
    std::unique_ptr<Descriptor> log{};
    pid_t pid = -1;
    std::deque<run::Event> events{};
    bool killed = false;
    std::optional<run::Death> death{};
    bool death_taken = false;
  };
  /// The launcher's ends of the three standard streams.
  struct Streams {
    std::unique_ptr<Descriptor> in;
    std::unique_ptr<Descriptor> out;
    std::unique_ptr<Descriptor> err;
  };
  RemoteHost(RemoteHostOptions options, pid_t pid, int pidfd, Streams streams);

  void send(const run::ToRelay& message);
  bool has_room() const;
  void read_frames();
  void take(run::FromRelay message);
  void read_errors();
  void take_end();
  /// All processes that live are lost.
  void lose(const std::string& why);
  void give_up();
  void look_for_end();
  bool is_overdue() const;

  const RemoteHostOptions options_;
  const pid_t pid_;
  const Descriptor pidfd_;
  Streams streams_;
  OutputStream commands_;
  base::SteadyClock clock_;
  run::StreamFrames frames_{run::kRelayGreeting};
  std::map<int, Process> processes_;
  std::size_t waiting_ = 0;  // events that were not taken yet
  bool output_is_open_ = true;
  bool errors_are_open_ = true;
  bool has_ended_ = false;  // the command
  bool reaped_ = false;     // likewise, and its processes are lost
  base::TimePoint give_up_at_ = base::kNever;
  base::TimePoint next_beat_{};
  std::string error_text_;  // the last line of standard error, as far as it has come
  std::string last_line_;
  std::vector<std::string> lines_;
};

/// A process on another host.
class RemoteProcess final : public RunProcess {
 public:
  RemoteProcess(std::shared_ptr<RemoteHost> host, int number) : host_(std::move(host)), number_(number) {}

  pid_t pid() const noexcept override { return host_->pid(number_); }
  void send(const run::Command& command) override { host_->send(number_, command); }
  void kill() override { host_->kill(number_); }
  void add_to(std::vector<pollfd>& waited, bool) const override { host_->add_to(waited); }
  std::optional<run::Event> next_event() override { return host_->next_event(number_); }
  std::optional<run::Death> take_death() override { return host_->take_death(number_); }

 private:
  const std::shared_ptr<RemoteHost> host_;
  const int number_;
};

}  // namespace caftan::actors
