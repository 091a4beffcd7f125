#include "fatal_signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace caftan::actors {
namespace {

constexpr std::array<int, 5> kFatal{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

struct Line {
  std::array<char, 512> text;
  std::size_t size;
};
// A handler may neither allocate nor take a lock: what it writes is there before. By position in kFatal.
std::array<Line, kFatal.size()> lines;

void tell(int number) {
  for (std::size_t i = 0; i < kFatal.size(); ++i) {
    if (kFatal[i] != number) continue;
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, lines[i].text.data(), lines[i].size);
  }
  ::raise(number);  // SA_RESETHAND: this time as without a handler
}

bool is_default(int number) {
  struct sigaction current {};
  return ::sigaction(number, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == SIG_DFL;
}

}  // namespace

FatalSignals::FatalSignals(const std::string& run, const std::string& directory) {
  for (std::size_t i = 0; i < kFatal.size(); ++i) {
    const std::string text =
        "error: " + run + " (pid " + std::to_string(::getpid()) + ") was killed by signal " +
        std::to_string(kFatal[i]) + " (" + ::strsignal(kFatal[i]) +
        ") in one of its workers, which share a process (run.placement); everything written so far "
        "is in " +
        directory + "\n";
    Line& line = lines[i];
    line.size = std::min(text.size(), line.text.size());
    std::memcpy(line.text.data(), text.data(), line.size);
    line.text[line.size - 1] = '\n';  // of one that was cut, too
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
