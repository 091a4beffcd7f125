/// `run.launcher = "ssh"`: the command that starts a relay on another host, and what its end means.
/// Rules: docs/protocols/launchers.md (LN-9 to LN-13).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/clock.hpp"

namespace caftan::launchers {

/// The argument that makes a program a relay.
inline constexpr const char* kRelayArgument = "caftan-relay";

/// What the copy of the launcher that was to become ssh writes where there is no ssh.
inline constexpr std::string_view kSshNotStarted = "the program ssh could not be started";

/// Returns the words of a command that runs the program as a relay on a host, by the user's ssh, which asks for
/// nothing.
/// @param program  its absolute path there
/// @param folder   where it runs, if that folder is there
std::vector<std::string> ssh_words(const std::string& address, const std::string& program, const std::string& folder,
                                   base::Duration connect_timeout);

/// How the command of a host ended.
struct SshEnd {
  std::string host{};     ///< its name in the file
  std::string address{};  ///< likewise
  bool by_signal = false;
  int number = 0;           ///< the exit code or the signal
  std::string last_line{};  ///< of its standard error
};
/// Returns what the end means for the workers of the host, with the way out where there is one: "was lost with host
/// ...".
std::string ssh_failure(const SshEnd& end);

}  // namespace caftan::launchers
