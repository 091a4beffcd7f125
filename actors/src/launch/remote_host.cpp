#include "launch/remote_host.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "caftan/base/internal/overloaded.hpp"
#include "caftan/launchers/internal/ssh.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::actors {
namespace {

/// How long the relay has to confirm that a process was killed, and the command to end with its input.
constexpr base::Duration kGrace = std::chrono::seconds(1);
constexpr std::size_t kMostWaiting = 1024;  // events
constexpr std::size_t kLongestLine = 4096;  // of standard error
constexpr std::size_t kReadAtOnce = 65536;

struct SshExec {
  char* const* arguments;
  int in;
  int out;
  int err;
  pid_t parent;
};

/// Runs between fork and exec, so it calls only functions that are allowed in the copy of a process which may have had
/// threads.
[[noreturn]] void become_ssh(const SshExec& exec) {
  ::setpgid(0, 0);  // Ctrl-C of a terminal reaches the launcher alone, which ends the run in order
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != exec.parent) ::_exit(127);  // the launcher has died before prctl took effect
  ::dup2(exec.in, STDIN_FILENO);
  ::dup2(exec.out, STDOUT_FILENO);
  ::dup2(exec.err, STDERR_FILENO);
  ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(exec.arguments[0], exec.arguments);
  constexpr std::string_view kFailed = launchers::kSshNotStarted;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kFailed.data(), kFailed.size());
  ::_exit(127);
}

/// Returns the ends of a pipe for reading and writing, above the standard descriptors also where one of these is
/// closed, since `become_ssh` replaces them. Errors: io_error.
Result<std::array<int, 2>> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error(Errc::io_error, std::string("pipe2: ") + std::strerror(errno));
  for (int& end : ends) {
    if (end > STDERR_FILENO) continue;
    const Descriptor low(end);
    end = ::fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (end < 0) return Error(Errc::io_error, std::string("fcntl: ") + std::strerror(errno));
  }
  return ends;
}

void wait_for_end(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::shared_ptr<RemoteHost>> RemoteHost::start(RemoteHostOptions options) {
  const auto in = make_pipe();
  if (!in) return in.error();
  const Descriptor their_in((*in)[0]);
  auto our_in = std::make_unique<Descriptor>((*in)[1]);
  const auto out = make_pipe();
  if (!out) return out.error();
  auto our_out = std::make_unique<Descriptor>((*out)[0]);
  const Descriptor their_out((*out)[1]);
  const auto err = make_pipe();
  if (!err) return err.error();
  auto our_err = std::make_unique<Descriptor>((*err)[0]);
  const Descriptor their_err((*err)[1]);

  std::vector<std::string> words = options.words;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const SshExec exec{arguments.data(), their_in.get(), their_out.get(), their_err.get(), ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return Error(Errc::io_error, std::string("fork: ") + std::strerror(errno));
  if (pid == 0) become_ssh(exec);
  ::setpgid(pid, pid);  // called in parent and child, since either may run first
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const Error error(Errc::io_error, std::string("pidfd_open: ") + std::strerror(errno));
    ::kill(pid, SIGKILL);
    wait_for_end(pid);
    return error;
  }
  for (const Descriptor* const end : {our_out.get(), our_err.get()}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  std::shared_ptr<RemoteHost> host(
      new RemoteHost(std::move(options), pid, pidfd, {std::move(our_in), std::move(our_out), std::move(our_err)}));
  host->send(host->options_.begin);
  return host;
}

RemoteHost::RemoteHost(RemoteHostOptions options, pid_t pid, int pidfd, Streams streams)
    : options_(std::move(options)),
      pid_(pid),
      pidfd_(pidfd),
      streams_(std::move(streams)),
      commands_(streams_.in->get()) {
  for (const auto& [number, log] : options_.logs) {
    processes_[number].log =
        std::make_unique<Descriptor>(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  }
}

RemoteHost::~RemoteHost() {
  streams_.in.reset();
  if (reaped_) return;
  pollfd ended{pidfd_.get(), POLLIN, 0};
  const auto grace = std::chrono::duration_cast<std::chrono::milliseconds>(kGrace).count();
  if (::poll(&ended, 1, static_cast<int>(grace)) != 1) ::kill(-pid_, SIGKILL);
  wait_for_end(pid_);
}

void RemoteHost::send(const run::ToRelay& message) {
  const auto bytes = wire::encode(message);
  const auto frame = bytes ? run::make_frame(*bytes) : Result<std::string>(bytes.error());
  if (frame && output_is_open_) commands_.write(*frame);
}

void RemoteHost::kill(int process) {
  Process& victim = processes_.at(process);
  if (victim.death || victim.killed) return;
  victim.killed = true;
  // A relay that has not started the process yet may wait for its connection.
  if (victim.pid < 0) return give_up();
  send(run::KillProcess{process});
  give_up_at_ = std::min(give_up_at_, clock_.now() + kGrace);
}

/// What the command has started here ends with it; what has come meanwhile is not read any more.
void RemoteHost::give_up() {
  ::kill(-pid_, SIGKILL);
  output_is_open_ = false;
}

bool RemoteHost::has_room() const { return waiting_ < kMostWaiting; }

/// Returns whether the relay owes the end of a process, or its command owes its own end.
bool RemoteHost::is_overdue() const {
  return has_ended_ || !output_is_open_ || std::ranges::any_of(processes_, [](const auto& process) {
           return process.second.killed && !process.second.death;
         });
}

void RemoteHost::add_to(std::vector<pollfd>& waited) const {
  if (output_is_open_ && has_room()) waited.push_back({streams_.out->get(), POLLIN, 0});
  if (errors_are_open_) waited.push_back({streams_.err->get(), POLLIN, 0});
  if (!reaped_ && (!has_ended_ || !output_is_open_)) waited.push_back({pidfd_.get(), POLLIN, 0});
  if (output_is_open_ && commands_.waiting() > 0) waited.push_back({commands_.fd(), POLLOUT, 0});
}

void RemoteHost::read() {
  if (reaped_) return;
  if (output_is_open_ && clock_.now() >= next_beat_ && commands_.waiting() == 0) {
    next_beat_ = clock_.now() + options_.beat;
    send(run::LauncherAlive{});
  }
  if (output_is_open_) commands_.flush();
  if (output_is_open_ && has_room()) read_frames();
  if (errors_are_open_) read_errors();
  look_for_end();
  if (clock_.now() >= give_up_at_) {
    give_up_at_ = base::kNever;
    if (is_overdue()) give_up();
  }
  if (!output_is_open_) take_end();
}

/// Usually the stream ends with the command; a process that the command has left behind may hold it open.
void RemoteHost::look_for_end() {
  siginfo_t info{};
  if (has_ended_ || ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
  has_ended_ = info.si_pid != 0;
  if (has_ended_) give_up_at_ = std::min(give_up_at_, clock_.now() + kGrace);
}

void RemoteHost::read_frames() {
  std::array<char, kReadAtOnce> bytes{};
  const ssize_t size = ::read(streams_.out->get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    output_is_open_ = false;
    give_up_at_ = std::min(give_up_at_, clock_.now() + kGrace);
    return;
  }
  frames_.append({bytes.data(), static_cast<std::size_t>(size)});
  for (;;) {
    const auto frame = frames_.next();
    if (frame && !*frame) return;
    auto message = frame ? wire::decode<run::FromRelay>(**frame) : Result<run::FromRelay>(frame.error());
    if (!message) {
      lose("was lost with host '" + options_.name + "': " + message.error().message());
      return give_up();
    }
    take(*std::move(message));
  }
}

void RemoteHost::take(run::FromRelay message) {
  const auto with = [this](int number, const auto& use) {
    const auto process = processes_.find(number);
    if (process != processes_.end() && !process->second.death) use(process->second);
  };
  std::visit(
      base::Overloaded{
          [&](const run::ProcessStarted& started) {
            with(started.process, [&](Process& process) { process.pid = static_cast<pid_t>(started.pid); });
          },
          [&](run::RelayEvent& event) {
            with(event.process, [&](Process& process) {
              process.events.push_back(std::move(event.event));
              ++waiting_;
            });
          },
          [&](const run::ProcessLog& log) {
            with(log.process, [&](Process& process) {
              // A log that cannot be written does not end the run, as on the launcher's own host.
              [[maybe_unused]] const auto written = ::write(process.log->get(), log.text.data(), log.text.size());
            });
          },
          [&](const run::ProcessEnded& ended) {
            with(ended.process, [&](Process& process) { process.death = run::Death{ended.by_signal, ended.number}; });
          },
          [&](const run::RelayFailed& failed) {
            lose("could not be started on host '" + options_.name + "': " + failed.error.message());
          },
      },
      message);
}

void RemoteHost::read_errors() {
  std::array<char, kReadAtOnce> bytes{};
  for (;;) {
    const ssize_t size = ::read(streams_.err->get(), bytes.data(), bytes.size());
    if (size <= 0) {
      errors_are_open_ = size < 0 && (errno == EAGAIN || errno == EINTR);
      break;
    }
    error_text_.append(bytes.data(), static_cast<std::size_t>(size));
  }
  if (!errors_are_open_ && !error_text_.empty()) error_text_ += '\n';
  for (;;) {
    std::size_t end = error_text_.find('\n');
    if (end == std::string::npos && error_text_.size() > kLongestLine) end = kLongestLine;
    if (end == std::string::npos) return;
    std::string line = error_text_.substr(0, end);
    error_text_.erase(0, std::min(end + 1, error_text_.size()));
    while (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    last_line_ = line;
    lines_.push_back(std::move(line));
  }
}

void RemoteHost::take_end() {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return;
  reaped_ = true;
  if (errors_are_open_) read_errors();
  lose(launchers::ssh_failure({.host = options_.name,
                               .address = options_.address,
                               .by_signal = info.si_code != CLD_EXITED,
                               .number = info.si_status,
                               .last_line = last_line_}));
}

void RemoteHost::lose(const std::string& why) {
  for (auto& [number, process] : processes_) {
    if (!process.death) process.death = run::Death{true, SIGKILL, why};
  }
}

std::optional<run::Event> RemoteHost::next_event(int process) {
  std::deque<run::Event>& events = processes_.at(process).events;
  if (events.empty()) read();
  if (events.empty()) return std::nullopt;
  run::Event event = std::move(events.front());
  events.pop_front();
  --waiting_;
  return event;
}

std::optional<run::Death> RemoteHost::take_death(int process) {
  read();
  Process& of = processes_.at(process);
  if (!of.death || of.death_taken) return std::nullopt;
  of.death_taken = true;
  return of.death;
}

}  // namespace caftan::actors
