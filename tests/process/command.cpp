#include "command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace caftan::test {

using Clock = std::chrono::steady_clock;

namespace {

/// Returns whether a line of an application file or a word of the command line decides how workers talk.
bool chooses_channel(std::string line) {
  line.erase(std::min(line.find('#'), line.size()));
  std::erase_if(line, [](char c) { return c == ' ' || c == '"'; });
  for (const char* const choice : {"channel=", "placement=one_process", "placement=hosts"}) {
    const std::size_t at = line.find(choice);
    if (at == 0 || (at != line.npos && line[at - 1] == '.')) return true;
  }
  return false;
}

/// Returns the words of a command line, and with CAFTAN_TEST_CHANNEL a setting that makes a run of several processes
/// use that kind of channel, unless its words or its file decide it.
std::vector<std::string> words_of(const Folder& folder, const std::string& program,
                                  const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const char* const kind = std::getenv("CAFTAN_TEST_CHANNEL");
  const bool names_one = kind && kind != std::string_view("loopback");  // that one is for one process
  if (!names_one || arguments.size() < 2 || arguments.front() != "run") return words;
  bool chosen = std::ranges::any_of(arguments, chooses_channel);
  std::ifstream file(folder.path() / arguments[1]);
  for (std::string line; std::getline(file, line);) chosen = chosen || chooses_channel(line);
  if (!chosen) words.insert(words.begin() + 3, std::string("cluster.channel=") + kind);  // behind the file
  return words;
}

}  // namespace

Command::Command(const Folder& folder, const std::string& program, const std::vector<std::string>& arguments) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  std::vector<std::string> words = words_of(folder, program, arguments);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    if (::chdir(folder.path().c_str()) == 0) ::execv(pointers[0], pointers.data());
    ::_exit(126);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_.fd = out[0];
  err_.fd = err[0];
}

Command::~Command() {
  if (status_ < 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  while (::waitpid(-1, nullptr, 0) > 0) {  // the command's workers end after it
  }
  ::close(out_.fd);
  ::close(err_.fd);
}

void Command::signal(int number) const { ::kill(pid_, number); }

/// Returns false when both streams have ended, or at the deadline.
bool Command::read_some(Clock::time_point until) {
  if (out_.fd < 0 && err_.fd < 0) return false;
  std::array<pollfd, 2> waited{{{out_.fd, POLLIN, 0}, {err_.fd, POLLIN, 0}}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  if (left <= 0 || ::poll(waited.data(), waited.size(), static_cast<int>(left)) <= 0) return false;
  bool open = false;
  for (Stream* stream : {&out_, &err_}) {
    if (stream->fd < 0) continue;
    const pollfd& at = waited[stream == &out_ ? 0 : 1];
    open = open || at.revents == 0;
    if (at.revents == 0) continue;
    std::array<char, 65536> bytes{};
    const ssize_t size = ::read(stream->fd, bytes.data(), bytes.size());
    if (size > 0) {
      stream->text.append(bytes.data(), static_cast<std::size_t>(size));
      open = true;
    } else {
      ::close(stream->fd);
      stream->fd = -1;
    }
  }
  return open || out_.fd >= 0 || err_.fd >= 0;
}

bool Command::has_line(const std::string& text, const std::string& start) {
  return text.starts_with(start) || text.find("\n" + start) != std::string::npos;
}

bool Command::wait_for_line(const std::string& start) {
  const auto until = Clock::now() + kPatience;
  for (;;) {
    if (has_line(out_.text, start) || has_line(err_.text, start)) return true;
    if (!read_some(until)) return has_line(out_.text, start) || has_line(err_.text, start);
  }
}

int Command::wait() {
  const auto until = Clock::now() + kPatience;
  while (read_some(until)) {
  }
  // Both output streams have ended, so the process has ended, or is about to.
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  pollfd waited{pidfd, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  const bool ended = ::poll(&waited, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) == 1;
  ::close(pidfd);
  if (!ended) return -1;
  ::waitpid(pid_, &status_, 0);
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

bool Command::nothing_is_left(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  // Orphans of the command are children of the test now: SIGCHLD reports each end to the test.
  sigset_t child;
  sigset_t before;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, &before);
  bool none = false;
  for (;;) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended > 0) continue;
    none = ended < 0;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (none || left <= 0) break;
    const timespec room{left / 1000, (left % 1000) * 1'000'000};
    ::sigtimedwait(&child, nullptr, &room);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return none;
}

pid_t Command::worker(const std::string& name) const {
  const std::size_t at = err_.text.find("  " + name + " ");
  const std::size_t pid = at == std::string::npos ? at : err_.text.find("pid ", at);
  return pid == std::string::npos ? 0 : static_cast<pid_t>(std::strtol(err_.text.c_str() + pid + 4, nullptr, 10));
}

std::string Command::run_directory() const {
  for (const std::string& text : {err_.text, out_.text}) {
    const std::size_t at = text.find("runs/");
    if (at != std::string::npos) return text.substr(at, text.find_first_of(",:\n", at) - at);
  }
  return {};
}

Finished run_to_end(const Folder& folder, const std::string& program, const std::vector<std::string>& arguments) {
  Command command(folder, program, arguments);
  const int code = command.wait();
  return {code, command.out(), command.err()};
}

bool is_whole_csv(const std::string& text) {
  if (text.empty() || text.back() != '\n') return false;
  std::ptrdiff_t columns = -1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const auto commas = std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                   text.begin() + static_cast<std::ptrdiff_t>(end), ',');
    if (columns < 0) columns = commas;
    if (commas != columns) return false;
    at = end + 1;
  }
  return columns > 0;
}

}  // namespace caftan::test
