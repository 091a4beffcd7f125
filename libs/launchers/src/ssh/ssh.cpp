#include "caftan/launchers/internal/ssh.hpp"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string_view>

#include "caftan/base/settings_io.hpp"
#include "shell_word.hpp"

namespace caftan::launchers {
namespace {

constexpr int kSshItself = 255;    // ssh could not connect, or lost its connection
constexpr int kNoProgram = 127;    // of the remote shell
constexpr int kNotRunnable = 126;  // likewise

bool has_one_of(const std::string& text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

std::string way_out(const SshEnd& end) {
  if (end.by_signal) return {};
  if (has_one_of(end.last_line, {kSshNotStarted}))
    return "; install ssh on this machine (Debian's package is openssh-client)";
  if (end.number == kNoProgram || end.number == kNotRunnable) {
    return "; the program has to be on each host, at the same path";
  }
  if (end.number != kSshItself) return {};
  if (has_one_of(end.last_line, {"Permission denied", "Too many authentication failures"})) {
    return "; ssh may ask for no password here: put your key there with ssh-copy-id " + end.address +
           ", or load it with ssh-add";
  }
  if (has_one_of(end.last_line, {"Host key verification failed", "host key"})) {
    return "; ssh does not know the host: connect once with ssh " + end.address + " and compare its key";
  }
  if (has_one_of(end.last_line, {"timed out", "No route to host", "Connection refused", "Could not resolve"})) {
    return "; try ssh " + end.address + " by hand";
  }
  return {};
}

}  // namespace

std::vector<std::string> ssh_words(const std::string& address, const std::string& program, const std::string& folder,
                                   base::Duration connect_timeout) {
  const auto limit = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(connect_timeout).count());
  return {"ssh",
          "-T",  // no terminal, whose end would not be the end of the input
          "-o",
          "BatchMode=yes",
          "-o",
          "ConnectTimeout=" + std::to_string(limit),
          "--",
          address,
          "cd " + shell_word(folder) + " 2>/dev/null; exec " + shell_word(program) + " " + kRelayArgument};
}

std::string ssh_failure(const SshEnd& end) {
  return "was lost with host '" + end.host + "': ssh " + end.address +
         (end.by_signal ? " was killed by signal " : " ended with exit code ") + std::to_string(end.number) +
         (end.last_line.empty() ? "" : ": " + printable(end.last_line)) + way_out(end);
}

}  // namespace caftan::launchers
