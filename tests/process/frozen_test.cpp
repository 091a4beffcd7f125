// RN-2 to RN-4, RN-8: processes that are stopped by SIGSTOP and so do not end: the launcher finds them, names them, and
// ends the run.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <list>

#include "command.hpp"
#include "free_port.hpp"
#include "programs.hpp"

namespace caftan::test::frozen_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kQuickBeats = "[cluster]\nheartbeat = \"300ms\"\n";
constexpr const char* kSilence =
    " has shown no sign of life for 1500ms (5 of cluster.heartbeat): it is stopped, or its machine is overloaded";

class Frozen : public ::testing::Test {
 protected:
  /// Returns the process of a worker that is ready.
  static pid_t worker(Command& command, const std::string& name) {
    EXPECT_TRUE(command.wait_for_line("  " + name)) << command.err();
    const pid_t pid = command.worker(name);
    EXPECT_GT(pid, 0);
    return pid;
  }
  void expect_named(Command& command, const std::string& name, pid_t pid) {
    EXPECT_EQ(command.wait(), 1) << command.err();
    EXPECT_TRUE(command.nothing_is_left(0ms));
    EXPECT_THAT(command.err(), HasSubstr("error: " + name + " (pid " + std::to_string(pid) + ")" + kSilence));
  }
  /// Stops the launcher and all workers for `time`, while other runs start and end, and then continues them.
  void freeze_whole(Command& command, std::chrono::milliseconds time) {
    std::vector<pid_t> all{command.pid()};  // the launcher is stopped first, because it would notice stopped workers
    for (const std::string name : {"ticker", "echo-0", "echo-1"}) {
      all.push_back(worker(command, name));
      ASSERT_GT(all.back(), 0) << "0 would be this test, too";
    }
    for (const pid_t pid : all) ::kill(pid, SIGSTOP);
    const auto stopped = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - stopped < time) {
      Command& other = others_.emplace_back(folder_, kTicking,
                                            std::vector<std::string>{"run", "t.toml", "roles.ticker.config.rounds=1"});
      EXPECT_EQ(other.wait(), 0) << other.err();
    }
    for (const pid_t pid : all) ::kill(pid, SIGCONT);
  }
  Folder folder_;
  std::list<Command> others_;  // destroyed last: each waits for all child processes of this test
};

TEST_F(Frozen, RN2_AllOfThem) {
  folder_.write("t.toml", ticking_file("", kQuickBeats));
  Command command(folder_, kTicking, {"run", "t.toml"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  for (const std::string name : {"ticker", "echo-0", "echo-1"}) ::kill(worker(command, name), SIGSTOP);
  EXPECT_EQ(command.wait(), 1) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), ContainsRegex("error: (ticker|echo-0|echo-1) \\(pid [0-9]+\\) has shown no sign of life"));
}

TEST_F(Frozen, RN2_OneOfThemIsNamedWhicheverFindsItFirst) {
  folder_.write("t.toml", ticking_file("", kQuickBeats));
  Command command(folder_, kTicking, {"run", "t.toml"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  const pid_t pid = worker(command, "echo-1");
  ::kill(pid, SIGSTOP);
  expect_named(command, "echo-1", pid);
}

TEST_F(Frozen, RN16_OneThatMayBeLostIsKilledAndTheOthersGoOn) {
  folder_.write("t.toml", ticking_file("", kQuickBeats));
  Command command(folder_, kTicking, {"run", "t.toml", "roles.echo.on_loss=go_on", "roles.ticker.config.until=enough"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  ::kill(worker(command, "echo-1"), SIGSTOP);
  ASSERT_TRUE(command.wait_for_line("warning: echo-1 ")) << command.err();
  folder_.write("enough", "");
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), HasSubstr("\nlost: echo-1 "));
}

TEST_F(Frozen, RN1_UserCodeThatNeverReturnsIsNoSilence) {
  folder_.write("t.toml", ticking_file("start_timeout = \"3s\"\n", kQuickBeats));
  const Finished run = run_to_end(folder_, kTicking, {"run", "t.toml", "roles.echo.config.birth=hangs"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: start: the constructor"), Not(HasSubstr("no sign of life"))));
}

TEST_F(Frozen, RN2_TheOnlyOneOfAHost) {
  folder_.write("s", "our shared secret\n");
  FreePort port;
  folder_.write("t.toml",
                ticking_file("placement = \"hosts\"\nstart_timeout = \"30s\"\n",
                             std::string(kQuickBeats) +
                                 "secret_file = \"s\"\n[hosts.here]\naddress = \"127.0.0.1:" + port.number() + "\"\n"));
  port.release();
  Command ticker(folder_, kTicking, {"run", "t.toml", "--role", "ticker"});
  Command echoes(folder_, kTicking, {"run", "t.toml", "--role", "echo"});
  ASSERT_TRUE(ticker.wait_for_line("tick 20")) << ticker.err();
  const pid_t pid = worker(ticker, "ticker");
  ::kill(pid, SIGSTOP);
  EXPECT_EQ(echoes.wait(), 1) << echoes.err();
  EXPECT_THAT(echoes.err(),
              AllOf(HasSubstr("error: ticker: peer_down: no bytes from ticker for "), HasSubstr("cluster.heartbeat"),
                    HasSubstr("; the log of ticker is with its own launcher, on host here\n")));
  expect_named(ticker, "ticker", pid);
  EXPECT_THAT(ticker.err(), HasSubstr(", start with log/ticker.log\n"));
}

TEST_F(Frozen, RN3_M13_WhatIsStoppedWholeAndContinuedGoesOn) {
  folder_.write("t.toml", ticking_file("", kQuickBeats));
  Command command(folder_, kTicking, {"run", "t.toml", "roles.ticker.config.rounds=2000"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  freeze_whole(command, 2s);  // a single stopped worker would be lost after 5 heartbeats: 1.5 s
  EXPECT_EQ(command.wait(), 0) << command.err();
}

TEST_F(Frozen, K15_RN8_AStartThatIsStoppedWholeAndContinuedGoesOn) {
  folder_.write("t.toml", ticking_file());
  ASSERT_EQ(::mkfifo((folder_ / "birth").c_str(), 0600), 0);
  const int birth = ::open((folder_ / "birth").c_str(), O_RDWR | O_CLOEXEC);
  Command command(
      folder_, kTicking,
      {"run", "t.toml", "run.start_timeout=5s", "roles.echo.config.birth=waits", "roles.ticker.config.rounds=20"});
  freeze_whole(command, 6s);
  EXPECT_EQ(::write(birth, "xx", 2), 2);  // one for each echo
  EXPECT_EQ(command.wait(), 0) << command.err();
  ::close(birth);
}

TEST_F(Frozen, RN4_AfterAnInterruptOnlyTheFrozenOneIsLate) {
  folder_.write("t.toml", ticking_file("stop_timeout = \"1s\"\n"));
  Command command(folder_, kTicking, {"run", "t.toml"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  ::kill(worker(command, "echo-0"), SIGSTOP);
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(),
              AllOf(HasSubstr("warning: echo-0 had not answered within 1s (run.stop_timeout) and was killed\n"),
                    Not(HasSubstr("warning: ticker")), Not(HasSubstr("echo-1 had not"))));
}

TEST_F(Frozen, RN4_ASecondInterruptIsNotTheTimeout) {
  folder_.write("t.toml", ticking_file("stop_timeout = \"10min\"\n"));
  Command command(folder_, kTicking, {"run", "t.toml"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  ::kill(worker(command, "echo-0"), SIGSTOP);
  command.signal(SIGINT);
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), AllOf(HasSubstr("echo-0"), HasSubstr(" had not answered when the second Ctrl-C came"),
                                   Not(HasSubstr("run.stop_timeout"))));
}

}  // namespace
}  // namespace caftan::test::frozen_test
