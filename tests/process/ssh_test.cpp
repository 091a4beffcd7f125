// LN-9 to LN-13: a run over several hosts from one command. A program in place of ssh runs its command on this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "command.hpp"
#include "free_port.hpp"
#include "programs.hpp"
#include "soak_size.hpp"

namespace caftan::test::ssh_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr const char* kSsh = R"(#!/bin/sh
echo "$@" >> ssh.log
while [ "$1" != "--" ]; do shift; done
host=$2
command=$3
case "$host:$SSH_PLAYS" in
  127.0.0.3:password) echo "me@$host: Permission denied (publickey,password)." >&2; exit 255 ;;
  127.0.0.3:down) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255 ;;
  127.0.0.3:missing) command="exec /no/such/program caftan-relay" ;;
  127.0.0.3:banner) echo "Welcome to $host" ;;
  127.0.0.3:hangs) exec sleep 1000 ;;
  *:apart) exec unshare -m sh -c "mount -t tmpfs none runs && $command" ;;
  127.0.0.3:full) exec unshare -m sh -c "mount -t tmpfs -o size=4k none runs && head -c 4096 /dev/zero > runs/full && $command" ;;
esac
echo "hello from $host" >&2
sh -c "$command"
)";

std::string file_with(const std::string& port) {
  return "caftan = 1\n[run]\nname = \"ticking\"\nplacement = \"hosts\"\nlauncher = \"ssh\"\nstart_timeout = \"30s\"\n"
         "[roles.ticker]\ntype = \"ticker\"\n[roles.ticker.config]\nrounds = 20\n[roles.ticker.uses]\nechoes = "
         "\"echo\"\n"
         "[roles.echo]\ntype = \"echo\"\nreplicas = 2\nhosts = [\"node\", \"far\"]\n"
         "[cluster]\nsecret_file = \"s\"\n[hosts.here]\naddress = \"127.0.0.1:" +
         port + "\"\n[hosts.node]\naddress = \"127.0.0.2\"\n[hosts.far]\naddress = \"127.0.0.3\"\n";
}

class Ssh : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("s", "our shared secret\n");
    folder_.write("t.toml", file_with(port_.number()));
    std::filesystem::create_directory(folder_ / "bin");
    folder_.write("bin/ssh", kSsh);
    std::filesystem::permissions(folder_ / "bin/ssh", std::filesystem::perms::owner_all);
  }

  /// Returns the words that run t.toml. @param plays  what the host `far` does
  Words run(const std::string& plays = "", const Words& more = {}) {
    port_.release();
    Words words{"PATH=" + folder_ / "bin" + ":/usr/bin:/bin:/usr/sbin:/sbin", "SSH_PLAYS=" + plays, kTicking, "run",
                "t.toml"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// Returns a process of this test whose command line has this word; 0 if there is none.
  pid_t find(const std::string& word) const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry.path() / "cwd", ignored) != folder_.path()) continue;
      std::ifstream stream(entry.path() / "cmdline", std::ios::binary);
      const std::string line{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
      if (line.find(word) != std::string::npos) return static_cast<pid_t>(std::stol(entry.path().filename().string()));
    }
    return 0;
  }

  const std::string env_ = "/usr/bin/env";
  const Words endless_{"roles.ticker.config.rounds=100000000", "roles.ticker.config.ignore_stop=true"};
  Folder folder_;
  FreePort port_;
};

TEST_F(Ssh, LN9_OneCommandRunsTheApplicationOnAllHosts) {
  const Finished done = run_to_end(folder_, env_, run());
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("tick 20\n"));
  EXPECT_THAT(done.err, AllOf(HasSubstr("node: hello from 127.0.0.2\n"), HasSubstr("far: hello from 127.0.0.3\n"),
                              ContainsRegex("  echo-0  pid [0-9]+ on node  ready after"),
                              ContainsRegex("  echo-1  pid [0-9]+ on far  ready after")));
  EXPECT_THAT(folder_.read("ssh.log"), AllOf(HasSubstr("-T -o BatchMode=yes -o ConnectTimeout=30 -- 127.0.0.2 cd "),
                                             Not(HasSubstr("127.0.0.1"))));
  EXPECT_THAT(folder_.read("runs/latest/summary.json"),
              AllOf(HasSubstr("\"host\": \"node\""), HasSubstr("\"host\": \"far\"")));
}

TEST_F(Ssh, LN12_LogsAndResultsOfAllHostsAreInOneFolder) {
  const Finished done = run_to_end(folder_, env_, run("", {"roles.echo.config.birth=throws"}));
  EXPECT_EQ(done.code, 1);
  // Which failure is read first, that of an echo or that of its caller, is open.
  EXPECT_THAT(done.err, ContainsRegex("error: (echo-[01]|ticker): .*stillborn"));
  EXPECT_GT(folder_.read("runs/latest/log/echo-0.log").size() + folder_.read("runs/latest/log/echo-1.log").size(), 0U);
  std::size_t runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "runs")) runs += entry.is_symlink() ? 0 : 1;
  EXPECT_EQ(runs, 1U);
}

struct Refused {
  std::string plays;
  std::string error;
  std::string way_out{};
};
class HostThatFails : public Ssh, public ::testing::WithParamInterface<Refused> {};
INSTANTIATE_TEST_SUITE_P(
    Ways, HostThatFails,
    ::testing::Values(Refused{"password",
                              "ssh 127.0.0.3 ended with exit code 255: me@127.0.0.3: Permission denied "
                              "(publickey,password). after ",
                              " s; ssh may ask for no password here: put your key there"},
                      Refused{"down",
                              "ssh 127.0.0.3 ended with exit code 255: ssh: connect to host 127.0.0.3 port 22: No "
                              "route to host after ",
                              " s; try ssh 127.0.0.3 by hand\n"},
                      Refused{"missing", "ssh 127.0.0.3 ended with exit code 127: "},
                      Refused{"banner", "malformed_payload: \"Welcome to 127.0.0.3\" came instead of a greeting"}),
    [](const auto& info) { return info.param.plays; });

TEST_P(HostThatFails, LN13_IsNamedAndEndsTheRun) {
  Command command(folder_, env_, run(GetParam().plays));
  EXPECT_EQ(command.wait(), 1);
  EXPECT_THAT(command.err(),
              AllOf(HasSubstr("error: echo-1 "), HasSubstr("was lost with host 'far': " + GetParam().error),
                    HasSubstr(GetParam().way_out)));
  EXPECT_TRUE(command.nothing_is_left(5s));
}

TEST_F(Ssh, LN13_AHostThatNeverAnswersEndsWithTheStartTimeout) {
  Command command(folder_, env_, run("hangs", {"run.start_timeout=2s"}));
  EXPECT_EQ(command.wait(), 1);
  // On a busy machine the process of the other host is late, too.
  EXPECT_THAT(command.err(), ContainsRegex("start: (echo-0, )?echo-1 ha(s|ve) not come within 2s .run.start_timeout"));
  EXPECT_TRUE(command.nothing_is_left(5s));
}

TEST_F(Ssh, LN9_CtrlCEndsAllHostsInOrder) {
  Command command(folder_, env_, run("", {"roles.ticker.config.rounds=100000000"}));
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(5s));
}

TEST_F(Ssh, LN13_TheRunGoesOnWithoutAHostWhoseWorkersMayBeLost) {
  Command command(folder_, env_,
                  run("", {"roles.echo.on_loss=go_on", "roles.ticker.config.rounds=100000000",
                           "roles.ticker.config.until=enough"}));
  ASSERT_TRUE(command.wait_for_line("tick 5")) << command.err();
  ASSERT_TRUE(command.wait_for_line("  echo-1")) << command.err();
  const pid_t ssh = find("127.0.0.3");
  ASSERT_GT(ssh, 0);
  ::kill(ssh, SIGKILL);
  ASSERT_TRUE(command.wait_for_line("warning: echo-1 was lost with host 'far'")) << command.err();
  folder_.write("enough", "");
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_THAT(command.err(), HasSubstr("lost: echo-1 was lost with host 'far': ssh 127.0.0.3 was killed by signal 9"));
  EXPECT_TRUE(command.nothing_is_left(5s));
}

class Killed : public Ssh, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  /// Waits for a moment of the run: while it starts, or after a number of rounds.
  bool wait_for_a_moment(Command& command) {
    std::mt19937_64 random(GetParam());
    if (random() % 4 == 0) return command.wait_for_line("  echo");
    return command.wait_for_line("tick " + std::to_string(1 + random() % 200));
  }
};
INSTANTIATE_TEST_SUITE_P(Moments, Killed, ::testing::Range<std::uint64_t>(0, soak_size("CAFTAN_LAUNCHER_MOMENTS", 3)));

TEST_P(Killed, LN10_NothingIsLeftOfAKilledLauncher) {
  Command command(folder_, env_, run("", endless_));
  ASSERT_TRUE(wait_for_a_moment(command)) << command.err();
  command.signal(SIGKILL);
  command.wait();
  EXPECT_TRUE(command.nothing_is_left(5s));
}

TEST_P(Killed, LN13_AKilledRelayEndsTheRunAndItsWorkers) {
  Command command(folder_, env_, run("", endless_));
  ASSERT_TRUE(wait_for_a_moment(command)) << command.err();
  const pid_t relay = find("caftan-relay");
  ASSERT_GT(relay, 0);
  ::kill(relay, SIGKILL);
  EXPECT_EQ(command.wait(), 1) << command.err();
  EXPECT_THAT(command.err(), ContainsRegex("error: echo-[01]( \\(pid [0-9]+\\))? was lost with host '(node|far)'"));
  EXPECT_TRUE(command.nothing_is_left(5s));
}

TEST_F(Ssh, LN15_ARelayWhoseWorkerHasLostAPeerEndsWithoutItsLaunchersSignOfLife) {
  Words words = endless_;
  words.push_back("cluster.heartbeat=100ms");
  Command command(folder_, env_, run("", words));
  ASSERT_TRUE(command.wait_for_line("tick 5")) << command.err();
  command.signal(SIGSTOP);  // it is silent, as behind a network that was cut, while ssh lives
  ::kill(command.worker("ticker"), SIGKILL);
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (find("caftan-relay") != 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(find("caftan-relay"), 0);
  command.signal(SIGCONT);
  EXPECT_EQ(command.wait(), 1) << command.err();
  EXPECT_TRUE(command.nothing_is_left(5s));
}

class OtherFiles : public Ssh {
 protected:
  void SetUp() override {
    Ssh::SetUp();
    if (::geteuid() != 0 || std::system("unshare -m mount -t tmpfs none /mnt 2>/dev/null") != 0) {
      GTEST_SKIP() << "mounts of its own need root";
    }
  }
};

TEST_F(OtherFiles, LN12_AHostWithoutTheRunsFolderMakesIt) {
  const Finished done = run_to_end(folder_, env_, run("apart"));
  EXPECT_EQ(done.code, 0) << done.err;
  const Finished failed = run_to_end(folder_, env_, run("apart", {"roles.echo.config.birth=throws"}));
  EXPECT_EQ(failed.code, 1) << failed.err;
  EXPECT_GT(folder_.read("runs/latest/log/echo-0.log").size() + folder_.read("runs/latest/log/echo-1.log").size(), 0U)
      << "the logs came over ssh";
}

TEST_F(OtherFiles, LN13_AFullDiskIsNamed) {
  Command command(folder_, env_, run("full"));
  EXPECT_EQ(command.wait(), 1);
  EXPECT_THAT(command.err(), ContainsRegex("error: echo-1 could not be started on host 'far': io_error: "
                                           "[^\n]*No space left on device"));
  EXPECT_TRUE(command.nothing_is_left(5s));
}

/// A real sshd for both other hosts, on a port of its own, with keys of its own.
class Sshd : public Ssh {
 protected:
  void SetUp() override {
    Ssh::SetUp();
    for (const char* const program : {"/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen"}) {
      if (::access(program, X_OK) != 0) GTEST_SKIP() << program << " is missing: install openssh-server";
    }
    if (::geteuid() != 0) GTEST_SKIP() << "sshd needs root";
    std::filesystem::create_directories("/run/sshd");
    for (const char* const key : {"host", "user", "stranger"}) {
      run_to_end(folder_, "/usr/bin/ssh-keygen", {"-q", "-t", "ed25519", "-N", "", "-f", folder_ / key});
    }
    const std::string port = ssh_port_.number();
    folder_.write("sshd_config", "ListenAddress 127.0.0.2:" + port + "\nListenAddress 127.0.0.3:" + port +
                                     "\nHostKey " + folder_ / "host" + "\nAuthorizedKeysFile " + folder_ / "user.pub" +
                                     "\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n");
    with_key("user");
    folder_.write("bin/ssh", "#!/bin/sh\nexec /usr/bin/ssh -F " + folder_ / "ssh_config" + " \"$@\"\n");
    std::filesystem::permissions(folder_ / "bin/ssh", std::filesystem::perms::owner_all);
    ssh_port_.release();
  }
  void with_key(const std::string& key) const {
    folder_.write("ssh_config", "Host *\n  Port " + ssh_port_.number() + "\n  IdentityFile " + folder_ / key +
                                    "\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile " +
                                    folder_ / "known" + "\n  StrictHostKeyChecking accept-new\n");
  }
  Words sshd() const { return {"-D", "-e", "-f", folder_ / "sshd_config"}; }

  FreePort ssh_port_;
};

TEST_F(Sshd, LN9_ARunOverRealSsh) {
  Command server(folder_, "/usr/sbin/sshd", sshd());
  ASSERT_TRUE(server.wait_for_line("Server listening on 127.0.0.2")) << server.err();
  Command command(folder_, env_, run());
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_THAT(command.out(), HasSubstr("tick 20\n"));
  server.signal(SIGTERM);
  server.wait();
}

TEST_F(Sshd, LN13_AKeyThatIsNotAccepted) {
  with_key("stranger");
  Command server(folder_, "/usr/sbin/sshd", sshd());
  ASSERT_TRUE(server.wait_for_line("Server listening on 127.0.0.2")) << server.err();
  Command command(folder_, env_, run());
  EXPECT_EQ(command.wait(), 1);
  EXPECT_THAT(command.err(), AllOf(HasSubstr("Permission denied"), HasSubstr("ssh may ask for no password here")));
  server.signal(SIGTERM);
  server.wait();
}

TEST_F(Sshd, LN10_NothingIsLeftOfAKilledLauncher) {
  Command server(folder_, "/usr/sbin/sshd", sshd());
  ASSERT_TRUE(server.wait_for_line("Server listening on 127.0.0.2")) << server.err();
  Command command(folder_, env_, run("", endless_));
  ASSERT_TRUE(command.wait_for_line("tick 50")) << command.err();
  command.signal(SIGKILL);
  command.wait();
  server.signal(SIGTERM);  // its sessions go on, and are children of this test now
  server.wait();
  EXPECT_TRUE(command.nothing_is_left(10s));
}

TEST_F(Sshd, LN13_AKilledSshdEndsTheRun) {
  Command server(folder_, "/usr/sbin/sshd", sshd());
  ASSERT_TRUE(server.wait_for_line("Server listening on 127.0.0.2")) << server.err();
  Command command(folder_, env_, run("", endless_));
  ASSERT_TRUE(command.wait_for_line("tick 50")) << command.err();
  const pid_t relay = find("caftan-relay");
  ASSERT_GT(relay, 0);
  ::kill(relay, SIGKILL);
  EXPECT_EQ(command.wait(), 1) << command.err();
  EXPECT_THAT(command.err(), ContainsRegex("error: echo-[01]( \\(pid [0-9]+\\))? was lost with host '(node|far)'"));
  server.signal(SIGTERM);
  server.wait();
  EXPECT_TRUE(command.nothing_is_left(10s));
}

}  // namespace
}  // namespace caftan::test::ssh_test
