// LN-9, LN-13: the command that starts a relay, and what its end means.
#include "caftan/launchers/internal/ssh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::launchers::ssh_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;

TEST(Ssh, LN9_ItAsksForNothingAndTheShellTakesPathsAsTheyAre) {
  EXPECT_THAT(ssh_words("192.0.2.11", "/opt/my apps/it's", "/data/$x", 1500ms),
              ElementsAre("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=2", "--", "192.0.2.11",
                          "cd '/data/$x' 2>/dev/null; exec '/opt/my apps/it'\\''s' caftan-relay"));
}

std::string failure(int code, const std::string& line) {
  return ssh_failure({.host = "node", .address = "n1", .by_signal = false, .number = code, .last_line = line});
}

TEST(Ssh, LN13_TheReasonIsNamedWithTheWayOut) {
  EXPECT_EQ(
      failure(255, "me@n1: Permission denied (publickey,password)."),
      "was lost with host 'node': ssh n1 ended with exit code 255: me@n1: Permission denied (publickey,password).; "
      "ssh may ask for no password here: put your key there with ssh-copy-id n1, or load it with ssh-add");
  EXPECT_THAT(failure(255, "Host key verification failed."), EndsWith("connect once with ssh n1 and compare its key"));
  for (const char* const line :
       {"ssh: connect to host n1 port 22: Connection refused", "ssh: connect to host n1 port 22: No route to host",
        "ssh: connect to host n1 port 22: Connection timed out",
        "ssh: Could not resolve hostname n1: Name or service not known"}) {
    EXPECT_THAT(failure(255, line), EndsWith("; try ssh n1 by hand"));
  }
  EXPECT_THAT(failure(127, "sh: 1: /opt/x: not found"), EndsWith("on each host, at the same path"));
  EXPECT_THAT(failure(127, std::string(kSshNotStarted)),
              EndsWith("; install ssh on this machine (Debian's package is openssh-client)"));
  EXPECT_EQ(failure(1, ""), "was lost with host 'node': ssh n1 ended with exit code 1");
  EXPECT_EQ(ssh_failure({.host = "node", .address = "n1", .by_signal = true, .number = 9, .last_line = ""}),
            "was lost with host 'node': ssh n1 was killed by signal 9");
}

TEST(Ssh, LN13_AControlCharacterIsNotShown) { EXPECT_THAT(failure(1, "\x1b[2J"), EndsWith("exit code 1: ?[2J")); }

}  // namespace
}  // namespace caftan::launchers::ssh_test
