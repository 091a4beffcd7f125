#include "launch/run_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <variant>

#include "caftan/base/mutex.hpp"
#include "launch/descriptor.hpp"

namespace caftan::actors {
namespace {

/// @param what  did not work; errno says why
Error system_error(const std::string& what) {
  const int number = errno;
  std::string text = what + ": " + std::strerror(number);
  rlimit limit{};
  if (number == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    text += "; this process may have " + std::to_string(limit.rlim_cur) +
            " descriptors (ulimit -n), and needs 2 for each worker process";
  }
  if (number == EAGAIN) text += "; there is a limit of processes and threads (ulimit -u, or of a container)";
  return {Errc::io_error, std::move(text)};
}

/// The environment with what libgomp reads before main: waiting threads must not spin on cores that others need.
std::vector<std::string> child_environment() {
  std::vector<std::string> variables;
  bool has_policy = false;
  for (char** variable = environ; *variable; ++variable) {
    variables.emplace_back(*variable);
    has_policy = has_policy || variables.back().starts_with("OMP_WAIT_POLICY=");
  }
  if (!has_policy) variables.emplace_back("OMP_WAIT_POLICY=passive");
  return variables;
}

/// Returns whether this thread is the only one. Where /proc is not mounted, that is not known.
bool is_single_threaded() {
  struct stat tasks {};
  return ::stat("/proc/self/task", &tasks) == 0 &&
         tasks.st_nlink == 3;  // a link for each thread, and two of the folder
}

struct Exec {
  const WorkerMain* worker_main;  // null: the program is started again
  const std::string* name;
  const char* executable;
  char* const* arguments;
  char* const* environment;
  int control;
  int log;
  int null;
  pid_t group;
  pid_t parent;
};

/// Runs in the copy of a process which may have had threads, so it calls only functions that are allowed there. An
/// exception must not come back into the code of the launcher, which stands below on the stack.
[[noreturn]] void become_child(const Exec& exec) noexcept {
  ::setpgid(0, exec.group);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != exec.parent) ::_exit(127);  // the launcher has died before prctl took effect
  ::dup2(exec.null, STDIN_FILENO);
  ::dup2(exec.log, STDOUT_FILENO);
  ::dup2(exec.log, STDERR_FILENO);
  // The three descriptors of `exec` have higher numbers than kControlDescriptor. dup2 makes copies without
  // close-on-exec; close_range closes the originals.
  ::dup2(exec.control, kControlDescriptor);
  ::syscall(SYS_close_range, kControlDescriptor + 1, ~0U, 0);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (exec.worker_main) {
    ::setenv("OMP_WAIT_POLICY", "passive", 0);  // for what this process starts, as in `environment`
    (*exec.worker_main)(*exec.name);
  }
  ::execvpe(exec.executable, exec.arguments, exec.environment);
  constexpr std::string_view kFailed = "the program could not be started again\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kFailed.data(), kFailed.size());
  ::_exit(127);
}

void wait_for(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Moves a descriptor above those that `become_child` replaces: standard input, output and error, and the control
/// socket.
int raised(int fd) {
  if (fd < 0) return fd;  // errno still says why
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, kControlDescriptor + 1);
  ::close(fd);
  return high;
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ChildOptions& options) {
  const std::string process = "the process of worker '" + options.name + "' could not be started: ";
  auto pair = ControlSocket::make_pair();
  if (!pair) return system_error(process + "socketpair");
  const bool has_pipe = options.log_pipe >= 0;
  const Descriptor log(has_pipe ? ::fcntl(options.log_pipe, F_DUPFD_CLOEXEC, kControlDescriptor + 1)
                                : raised(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)));
  if (log.get() < 0) return system_error(process + options.log.string());
  const Descriptor null(raised(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  const Descriptor control(::fcntl(pair->second.fd(), F_DUPFD_CLOEXEC, kControlDescriptor + 1));
  if (null.get() < 0 || control.get() < 0) return system_error(process + "/dev/null");

  std::vector<std::string> variables = child_environment();
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::array<std::string, 3> words{options.executable, kWorkerArgument, options.name};
  std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
  const Exec exec{is_single_threaded() ? &options.worker_main : nullptr,
                  &options.name,
                  options.executable.c_str(),
                  arguments.data(),
                  environment.data(),
                  control.get(),
                  log.get(),
                  null.get(),
                  options.group,
                  ::getpid()};
  std::fflush(nullptr);  // what this process has not written yet, its copy would write, too
  const pid_t pid = ::fork();
  if (pid < 0) return system_error(process + "fork");
  if (pid == 0) become_child(exec);
  ::setpgid(pid, options.group);  // called in parent and child, since either may run first
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const Error error = system_error(process + "pidfd_open");
    ::kill(pid, SIGKILL);
    wait_for(pid);
    return error;
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, pidfd, std::move(pair->first)));
}

ChildProcess::~ChildProcess() {
  if (!ended_) ::kill(pid_, SIGKILL);
  wait_for(pid_);
  ::close(pidfd_);
}

void ChildProcess::send(const run::Command& command) {
  if (const auto sent = socket_.send(command); !sent && sent.error().code() == Errc::limit_exceeded) kill();
}

void ChildProcess::kill() {
  if (!ended_) ::kill(pid_, SIGKILL);
}

void ChildProcess::add_to(std::vector<pollfd>& waited, bool events) const {
  if (talks_ && events) waited.push_back({socket_.fd(), POLLIN, 0});
  if (!ended_) waited.push_back({pidfd_, POLLIN, 0});
}

std::optional<run::Event> ChildProcess::next_event() {
  if (!talks_) return std::nullopt;
  auto event = socket_.receive_event();
  if (event) return *std::move(event);
  talks_ = false;  // the end of the process is reported by `take_death`; a process that sends nonsense is killed
  if (event.error().code() != Errc::peer_down) kill();
  return std::nullopt;
}

std::optional<run::Death> ChildProcess::take_death() {
  if (ended_) return std::nullopt;
  siginfo_t info{};
  // The process stays a zombie until the destructor, so that the system gives its number, which may be that of the
  // process group, to no other process.
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  ended_ = true;
  return run::Death{info.si_code != CLD_EXITED, info.si_status};
}

// ---- this process

struct LocalProcess::Queue {
  ~Queue() {
    if (wake >= 0) ::close(wake);
  }
  /// Waits while too much is unread, as the socket of another process would.
  void push(run::Event event) {
    base::UniqueLock lock(mutex);
    room.wait(lock.native(), [&] {
      mutex.assert_held();
      return closed || events.size() < kMost;
    });
    if (closed) return;
    events.push_back(std::move(event));
    signal();
  }
  /// Events that are pushed from now on are dropped.
  void close() {
    const base::LockGuard lock(mutex);
    close_locked();
  }
  void close_locked() CAFTAN_REQUIRES(mutex) {
    closed = true;
    room.notify_all();
  }
  void signal() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake, &one, sizeof one);
  }

  static constexpr std::size_t kMost = 1024;
  int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  base::Mutex mutex;
  std::condition_variable room;
  bool closed CAFTAN_GUARDED_BY(mutex) = false;
  std::deque<run::Event> events CAFTAN_GUARDED_BY(mutex);
  std::optional<run::Death> death CAFTAN_GUARDED_BY(mutex);
};

Result<std::unique_ptr<LocalProcess>> LocalProcess::start(WorkerSetOptions options) {
  auto queue = std::make_shared<Queue>();
  if (queue->wake < 0) return system_error("eventfd");
  std::unique_ptr<LocalProcess> process(new LocalProcess(queue));
  options.sink = [queue](run::Event event) { queue->push(std::move(event)); };
  process->workers_ = std::make_unique<WorkerSet>(std::move(options));
  process->thread_ = std::thread([queue, workers = process->workers_.get()] {
    const bool ended = workers->run();
    const base::LockGuard lock(queue->mutex);
    queue->death = run::Death{false, ended ? 0 : 1};
    queue->signal();
  });
  return process;
}

LocalProcess::~LocalProcess() {
  queue_->close();
  if (abandoned_) {
    // User code still runs on the thread, which ends with the process: the launcher exits the process next.
    thread_.detach();
    [[maybe_unused]] const WorkerSet* const left = workers_.release();
    return;
  }
  workers_->leave();
  thread_.join();
}

void LocalProcess::send(const run::Command& command) {
  if (std::holds_alternative<run::Stop>(command)) workers_->stop();
  if (const auto* leave = std::get_if<run::Leave>(&command)) workers_->leave(leave->error);
}

void LocalProcess::kill() {
  abandoned_ = true;
  queue_->signal();
}

void LocalProcess::add_to(std::vector<pollfd>& waited, bool events) const {
  if (!death_taken_ && events) waited.push_back({queue_->wake, POLLIN, 0});
}

std::optional<run::Event> LocalProcess::next_event() {
  const base::LockGuard lock(queue_->mutex);
  if (queue_->events.empty()) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(queue_->wake, &count, sizeof count);
    return std::nullopt;
  }
  run::Event event = std::move(queue_->events.front());
  queue_->events.pop_front();
  queue_->room.notify_one();
  return event;
}

std::optional<run::Death> LocalProcess::take_death() {
  const base::LockGuard lock(queue_->mutex);
  if (death_taken_ || (!queue_->death && !abandoned_)) return std::nullopt;
  death_taken_ = true;
  queue_->close_locked();
  const run::Death death = queue_->death.value_or(run::Death{true, SIGKILL});
  if (death.number != 0) abandoned_ = true;
  return death;
}

}  // namespace caftan::actors
