#include "launch/command_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace caftan::actors {
namespace {

Error system_error(const std::string& what) { return {Errc::io_error, what + ": " + std::strerror(errno)}; }

struct Exec {
  const char* executable;
  char* const* arguments;
  int log;
  int null;
  pid_t parent;
};

/// Runs between fork and exec, so it calls only functions that are allowed in the copy of a process which may have had
/// threads.
[[noreturn]] void become_command(const Exec& exec) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != exec.parent) ::_exit(127);  // the parent has died before prctl took effect
  ::dup2(exec.null, STDIN_FILENO);
  ::dup2(exec.log, STDOUT_FILENO);
  ::dup2(exec.log, STDERR_FILENO);
  // A handler of the parent must not run here: it would report this process's signal to the parent.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current {};
    ::sigaction(number, nullptr, &current);
    if (current.sa_handler != SIG_IGN) ::signal(number, SIG_DFL);
  }
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(exec.executable, exec.arguments);
  constexpr std::string_view kFailed = "the program could not be started again\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kFailed.data(), kFailed.size());
  ::_exit(127);
}

void wait_for(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::unique_ptr<CommandProcess>> CommandProcess::start(const CommandOptions& options) {
  const Descriptor log(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (log.get() < 0) return system_error(options.log.string());
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null.get() < 0) return system_error("/dev/null");

  std::vector<std::string> words{options.executable};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const Exec exec{options.executable.c_str(), pointers.data(), log.get(), null.get(), ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("fork");
  if (pid == 0) become_command(exec);
  ::setpgid(pid, 0);  // called in parent and child, since either may run first
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const Error error = system_error("pidfd_open");
    ::kill(pid, SIGKILL);
    wait_for(pid);
    return error;
  }
  return std::unique_ptr<CommandProcess>(new CommandProcess(pid, pidfd));
}

CommandProcess::~CommandProcess() {
  if (death_) return;
  ::kill(pid_, SIGKILL);
  wait_for(pid_);
}

void CommandProcess::interrupt() const {
  if (!death_) ::kill(pid_, SIGTERM);
}

std::optional<run::Death> CommandProcess::death() {
  siginfo_t info{};
  if (death_ || ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) {
    return death_;
  }
  death_ = run::Death{info.si_code != CLD_EXITED, info.si_status};
  return death_;
}

}  // namespace caftan::actors
