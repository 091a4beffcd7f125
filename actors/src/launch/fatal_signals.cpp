#include "launch/fatal_signals.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace caftan::actors {
namespace {

constexpr std::array<int, 5> kFatal{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr int kMostFrames = 48;

// What the handler of each fatal signal writes, by the signal's position in kFatal. Prepared beforehand, because a
// handler may neither allocate nor take a lock.
struct Prepared {
  std::string_view line;
  std::string_view summary;
  std::string_view rest;
};
std::array<Prepared, kFatal.size()> prepared;
const char* fresh_file = nullptr;
const char* summary_file = nullptr;
bool has_stack = false;
int reserve_descriptor = -1;
timespec began{};

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// "12.345"
void write_seconds(int fd) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  long milliseconds = (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1'000'000;
  std::array<char, 24> digits{};
  std::size_t at = digits.size();
  for (std::size_t count = 0; count < 5 || milliseconds > 0; ++count, milliseconds /= 10) {
    if (count == 3) digits[--at] = '.';
    digits[--at] = static_cast<char>('0' + milliseconds % 10);
  }
  write_all(fd, {digits.data() + at, digits.size() - at});
}

/// Writes summary.json into the run's folder, whole or not at all. Closes the disk reserve first, which gives the
/// summary its room on a full disk (RN-11).
void write_summary(const Prepared& words) {
  if (reserve_descriptor >= 0) ::close(reserve_descriptor);
  const int fd = ::open(fresh_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return;
  write_all(fd, words.summary);
  write_seconds(fd);
  const off_t size = ::lseek(fd, 0, SEEK_END) + static_cast<off_t>(words.rest.size());
  write_all(fd, words.rest);
  const bool is_whole =
      ::lseek(fd, 0, SEEK_END) == size && size > static_cast<off_t>(words.summary.size() + words.rest.size());
  ::close(fd);
  if (is_whole) {
    ::rename(fresh_file, summary_file);
  } else {
    ::unlink(fresh_file);
  }
}

void tell(int number) {
  for (std::size_t i = 0; i < kFatal.size(); ++i) {
    if (kFatal[i] != number) continue;
    write_all(STDERR_FILENO, prepared[i].line);
    if (has_stack) {
      std::array<void*, kMostFrames> frames{};
      ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), kMostFrames), STDERR_FILENO);
    }
    if (!prepared[i].summary.empty()) write_summary(prepared[i]);
  }
  ::raise(number);  // SA_RESETHAND: the signal now has its default effect
}

bool is_default(int number) {
  struct sigaction current {};
  return ::sigaction(number, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == SIG_DFL;
}

}  // namespace

FatalSignals::FatalSignals(const std::function<Words(int number)>& words, const std::string& summary_file_name,
                           bool stack, int reserve)
    : fresh_(summary_file_name + ".new"), file_(summary_file_name) {
  fresh_file = fresh_.c_str();
  summary_file = file_.c_str();
  has_stack = stack;
  reserve_descriptor = reserve;
  ::clock_gettime(CLOCK_MONOTONIC, &began);
  if (stack) {
    std::array<void*, 1> first{};
    ::backtrace(first.data(), 1);  // the first call of backtrace loads a library, which a signal handler must not do
  }
  words_.reserve(kFatal.size());
  for (std::size_t i = 0; i < kFatal.size(); ++i) {
    const Words& kept = words_.emplace_back(words(kFatal[i]));
    prepared[i] = {kept.line, kept.summary, kept.rest};
    if (!is_default(kFatal[i])) continue;
    struct sigaction action {};
    action.sa_handler = tell;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(kFatal[i], &action, nullptr);
  }
}

FatalSignals::~FatalSignals() {
  for (const int number : kFatal) {
    struct sigaction current {};
    if (::sigaction(number, nullptr, &current) == 0 && current.sa_handler == tell) ::signal(number, SIG_DFL);
  }
}

}  // namespace caftan::actors
