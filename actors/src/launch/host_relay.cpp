#include "launch/host_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "caftan/app/internal/run_directory.hpp"
#include "caftan/base/internal/overloaded.hpp"
#include "caftan/launchers/internal/ssh.hpp"
#include "caftan/run/internal/relay_messages.hpp"
#include "caftan/run/internal/stream_frames.hpp"
#include "caftan/wire/archive.hpp"
#include "launch/descriptor.hpp"
#include "launch/run_process.hpp"

namespace caftan::actors {
namespace {

/// The run's folder on this host: the launcher's own where both hosts share a file system, else one of the same path.
class RelayFolder {
 public:
  /// Errors: io_error (also if the folder of another run is there).
  Result<void> take(const std::filesystem::path& folder, const std::string& resolved) {
    const std::filesystem::path file = folder / "resolved.toml";
    std::ifstream stream(file, std::ios::binary);
    if (stream) {
      const std::string found{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
      if (found == resolved) return {};
      return Error(Errc::io_error, folder.string() + " is the folder of another run on this host; remove it");
    }
    std::error_code error;
    for (std::filesystem::path part = folder; !part.empty() && !std::filesystem::exists(part, error);
         part = part.parent_path()) {
      made_.push_back(part);
    }
    std::filesystem::create_directories(folder, error);
    if (error) return Error(Errc::io_error, folder.string() + ": " + error.message());
    file_ = file;
    return app::write_whole_file(file, resolved);
  }
  /// Removes what `take` has made, unless a role has written into the folder.
  ~RelayFolder() {
    if (file_.empty()) return;
    std::error_code error;
    const auto entries = std::distance(std::filesystem::directory_iterator(file_.parent_path(), error),
                                       std::filesystem::directory_iterator());
    if (error || entries > 1) return;
    std::filesystem::remove(file_, error);
    for (const std::filesystem::path& part : made_) ::rmdir(part.c_str());
  }
  RelayFolder() = default;
  RelayFolder(const RelayFolder&) = delete;
  RelayFolder& operator=(const RelayFolder&) = delete;

 private:
  std::vector<std::filesystem::path> made_;  // the innermost first
  std::filesystem::path file_;               // empty: nothing was made
};

/// A process that the relay has started, and the end of the pipe into which it writes its log.
struct Relayed {
  std::unique_ptr<ChildProcess> process{};
  std::unique_ptr<Descriptor> log{};  ///< null once the pipe has no writer
  bool ended = false;
};

class Relay {
 public:
  /// @param out  takes frames
  Relay(const WorkerMain& worker_main, std::string executable, int out)
      : worker_main_(worker_main), executable_(std::move(executable)), out_(out) {}
  /// Returns the exit code.
  int run();

 private:
  void write(std::string_view bytes);
  void send(const run::FromRelay& message);
  Result<void> read_input();
  Result<void> take(const run::ToRelay& message);
  Result<void> begin(const run::BeginRelay& begin);
  Result<void> start(int number, const std::string& name);
  void pass_on(int number, Relayed& relayed);
  void judge_silence(const run::Event& event);
  void pass_on_log(int number, Relayed& relayed, bool everything);

  const WorkerMain& worker_main_;
  const std::string executable_;
  const int out_;
  bool input_is_open_ = true;
  run::StreamFrames frames_;
  unsigned silence_s_ = 0;
  bool judges_silence_ = false;
  RelayFolder folder_;                // ends after the processes
  std::map<int, Relayed> processes_;  // by number in the plan
};

/// A launcher that is gone ends this process by SIGPIPE, and so do errors of another kind: its processes end with it.
void Relay::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(out_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Relay::send(const run::FromRelay& message) {
  const auto bytes = wire::encode(message);
  const auto frame = bytes ? run::make_frame(*bytes) : Result<std::string>(bytes.error());
  if (frame) write(*frame);
}

Result<void> Relay::start(int number, const std::string& name) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error(Errc::io_error, std::string("pipe2: ") + std::strerror(errno));
  auto log = std::make_unique<Descriptor>(ends[0]);
  const Descriptor theirs(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t group = processes_.empty() ? 0 : processes_.begin()->second.process->pid();
  auto child = ChildProcess::start(
      {.worker_main = worker_main_, .executable = executable_, .name = name, .group = group, .log_pipe = ends[1]});
  if (!child) return child.error();
  send(run::ProcessStarted{.process = number, .pid = (*child)->pid()});
  processes_.emplace(number, Relayed{*std::move(child), std::move(log)});
  return {};
}

Result<void> Relay::begin(const run::BeginRelay& begin) {
  silence_s_ = static_cast<unsigned>(std::clamp<std::int64_t>(begin.silence_s, 0, 1'000'000));
  if (auto taken = folder_.take(begin.run_directory, begin.resolved); !taken) return taken;
  for (const auto& [number, name] : begin.processes) {
    if (auto started = start(number, name); !started) return started;
  }
  return {};
}

Result<void> Relay::take(const run::ToRelay& message) {
  const auto process = [this](int number) -> ChildProcess* {
    const auto found = processes_.find(number);
    return found == processes_.end() ? nullptr : found->second.process.get();
  };
  Result<void> done;
  std::visit(base::Overloaded{
                 [&](const run::BeginRelay& begun) { done = begin(begun); },
                 [&](const run::RelayCommand& command) {
                   if (ChildProcess* to = process(command.process)) to->send(command.command);
                 },
                 [](const run::LauncherAlive&) {},
                 [&](const run::KillProcess& killed) {
                   if (ChildProcess* victim = process(killed.process)) victim->kill();
                 },
             },
             message);
  return done;
}

Result<void> Relay::read_input() {
  std::array<char, 65536> bytes{};
  const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (size < 0 && errno == EINTR) return {};
  if (size <= 0) input_is_open_ = false;
  if (judges_silence_) ::alarm(silence_s_);
  if (size > 0) frames_.append({bytes.data(), static_cast<std::size_t>(size)});
  for (;;) {
    const auto frame = frames_.next();
    if (!frame) return frame.error();
    if (!*frame) return {};
    const auto message = wire::decode<run::ToRelay>(**frame);
    if (!message) return message.error();
    if (auto taken = take(*message); !taken) return taken;
  }
}

/// @param everything  else at most some pieces, so that the log of one process holds up no other and no command
void Relay::pass_on_log(int number, Relayed& relayed, bool everything) {
  constexpr int kPiecesInATurn = 4;
  std::array<char, 16384> bytes{};
  for (int piece = 0; relayed.log && (everything || piece < kPiecesInATurn); ++piece) {
    const ssize_t size = ::read(relayed.log->get(), bytes.data(), bytes.size());
    if (size == 0) relayed.log.reset();
    if (size <= 0) return;
    send(run::ProcessLog{.process = number, .text = {bytes.data(), static_cast<std::size_t>(size)}});
  }
}

/// LN-15: from now on a launcher that is silent ends this process, by SIGALRM, also while it waits to write: the
/// network to the launcher's host may be what the worker has lost. Before that a launcher may be stopped for as long as
/// its user likes.
void Relay::judge_silence(const run::Event& event) {
  if (judges_silence_ ||
      (!std::holds_alternative<run::PeerLost>(event.body) && !std::holds_alternative<run::Failed>(event.body)))
    return;
  judges_silence_ = true;
  ::alarm(silence_s_);
}

void Relay::pass_on(int number, Relayed& relayed) {
  // Checked first: once a process has ended, all of its events and its log can be read.
  const auto death = relayed.process->take_death();
  while (auto event = relayed.process->next_event()) {
    judge_silence(*event);
    send(run::RelayEvent{.process = number, .event = *std::move(event)});
  }
  pass_on_log(number, relayed, death.has_value());
  if (!death) return;
  relayed.ended = true;
  send(run::ProcessEnded{.process = number, .by_signal = death->by_signal, .number = death->number});
}

int Relay::run() {
  write(run::kRelayGreeting);
  for (;;) {
    std::vector<pollfd> waited{{STDIN_FILENO, POLLIN, 0}};
    for (const auto& [number, relayed] : processes_) {
      if (relayed.ended) continue;
      relayed.process->add_to(waited, true);
      if (relayed.log) waited.push_back({relayed.log->get(), POLLIN, 0});
    }
    ::poll(waited.data(), waited.size(), -1);
    for (auto& [number, relayed] : processes_) {
      if (!relayed.ended) pass_on(number, relayed);
    }
    if (waited.front().revents == 0) continue;
    if (const auto read = read_input(); !read) {
      send(run::RelayFailed{read.error()});
      return 1;
    }
    if (!input_is_open_) return 0;
  }
}

}  // namespace

bool is_host_relay(int argc, char** argv) { return argc == 2 && std::strcmp(argv[1], launchers::kRelayArgument) == 0; }

void run_host_relay(const WorkerMain& worker_main, const std::string& executable) {
  // What a library prints must not come between the frames.
  const int out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, kControlDescriptor + 1);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  int code = 1;
  {
    Relay relay(worker_main, executable, out);
    code = relay.run();
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace caftan::actors
