// BI-6: whichever process of a run is killed, and whenever: the others end, the launcher names it, nothing is
// left. RN-15 to RN-18: or the others go on without it, as its role says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <random>

#include "command.hpp"
#include "programs.hpp"
#include "soak_size.hpp"

namespace caftan::test::kill_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// A moment of the run: while it starts, or after a number of rounds.
std::string moment(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  if (random() % 5 == 0) return "  ticker";  // how the line begins that reports the ticker ready
  return "tick " + std::to_string(1 + random() % 400);
}

class Killed : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Folder folder_;
  const std::string file_ = folder_.write("t.toml", ticking_file("", "[output]\nprogress = \"plain\"\n"));
};
class Stopped : public ::testing::Test {
 protected:
  Folder folder_;
  const std::string file_ = folder_.write("t.toml", ticking_file());
};
INSTANTIATE_TEST_SUITE_P(Moments, Killed, ::testing::Range<std::uint64_t>(0, soak_size("CAFTAN_MOMENTS", 10)));

TEST_P(Killed, BI6_AUsedWorkerIsNamedAndCallsToItFailAsPeerDown) {
  // The ticker ignores the stop: otherwise it could end before its next call, which reports the loss.
  Command command(folder_, kTicking, {"run", "t.toml", "roles.ticker.config.ignore_stop=true"});
  ASSERT_TRUE(command.wait_for_line("tick 1")) << command.err();
  ASSERT_TRUE(command.wait_for_line(moment(GetParam()))) << command.err();
  const std::string victim = "echo-" + std::to_string(GetParam() % 2);
  // The driver may tick before the report that a worker it uses is ready reaches the launcher.
  ASSERT_TRUE(command.wait_for_line("  " + victim)) << command.err();
  const pid_t pid = command.worker(victim);
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(),
              AllOf(HasSubstr("error: " + victim + " (pid " + std::to_string(pid) + ") was killed by signal 9"),
                    ContainsRegex("; ticker: peer_down: [^\n]*" + victim)));
  const std::string run = command.run_directory();
  EXPECT_THAT(
      folder_.read(run + "/summary.json"),
      AllOf(HasSubstr("\"exit_code\": 1"), ContainsRegex("\"name\": \"" + victim + "\"[^}]*\"was killed by signal 9"),
            ContainsRegex("\"name\": \"ticker\"[^}]*\"error\": \"\"")));
  EXPECT_TRUE(is_whole_csv(folder_.read(run + "/metrics.csv")));
}

/// Matches the line about a worker that was killed and without which the run went on.
auto names_lost(const std::string& worker) {
  return ContainsRegex("\nlost: " + worker + " was killed by signal 9 \\(SIGKILL\\)[^\n]*, after [0-9.]+ s\n");
}
/// The same of its summary.
auto has_lost(const std::string& worker) {
  return AllOf(
      HasSubstr("\"outcome\": \"success\""), HasSubstr("\"exit_code\": 0"),
      ContainsRegex("\"lost\": \\[\n    \\{\n      \"name\": \"" + worker + "\",\n      \"after_s\": [0-9.]+,"),
      ContainsRegex("\"name\": \"" + worker + "\",\n      \"host\"[^}]*\"was killed by signal 9"));
}

TEST_P(Killed, RN15_RN17_TheOthersFinishWithoutAUsedWorkerThatMayBeLost) {
  Command command(folder_, kTicking, {"run", "t.toml", "roles.echo.on_loss=go_on", "roles.ticker.config.until=enough"});
  ASSERT_TRUE(command.wait_for_line("tick 1")) << command.err();  // all constructors have returned
  ASSERT_TRUE(command.wait_for_line(moment(GetParam()))) << command.err();
  const std::string victim = "echo-" + std::to_string(GetParam() % 2);
  ASSERT_TRUE(command.wait_for_line("  " + victim)) << command.err();
  const pid_t pid = command.worker(victim);
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(command.wait_for_line("warning: " + victim + " was killed by signal 9 (SIGKILL)")) << command.err();
  folder_.write("enough", "");
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), names_lost(victim));
  EXPECT_THAT(command.out(), HasSubstr("\nseed ")) << "run() has gone on to its end";
  const std::string run = command.run_directory();
  EXPECT_THAT(folder_.read(run + "/summary.json"), has_lost(victim));
  EXPECT_TRUE(is_whole_csv(folder_.read(run + "/metrics.csv")));
}

TEST_F(Stopped, RN17_RN18_AnotherDriverFinishesWithoutOneThatMayBeLost) {
  Command command(folder_, kTicking,
                  {"run", "t.toml", "roles.ticker.on_loss=go_on", "roles.ticker.replicas=2",
                   "roles.ticker.config.together=2", "roles.ticker.config.until=enough"});
  ASSERT_TRUE(command.wait_for_line("tick 1")) << command.err();  // both are in run()
  ASSERT_TRUE(command.wait_for_line("  ticker-1")) << command.err();
  ASSERT_GT(command.worker("ticker-1"), 0);
  ::kill(command.worker("ticker-1"), SIGKILL);
  ASSERT_TRUE(command.wait_for_line("warning: ticker-1 was killed by signal 9 (SIGKILL)")) << command.err();
  folder_.write("enough", "");
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), names_lost("ticker-1"));
  EXPECT_THAT(folder_.read(command.run_directory() + "/summary.json"), has_lost("ticker-1"));
}

TEST_F(Stopped, RN15_AWorkerOfARoleThatFailsEndsTheRunThoughOthersMayBeLost) {
  Command command(folder_, kTicking,
                  {"run", "t.toml", "roles.ticker.on_loss=go_on", "roles.ticker.replicas=2",
                   "roles.ticker.config.ignore_stop=true"});
  ASSERT_TRUE(command.wait_for_line("tick 5")) << command.err();
  ASSERT_TRUE(command.wait_for_line("  echo-1")) << command.err();
  const pid_t pid = command.worker("echo-1");
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), HasSubstr("error: echo-1 (pid " + std::to_string(pid) + ") was killed by signal 9"));
  EXPECT_THAT(folder_.read(command.run_directory() + "/summary.json"),
              AllOf(HasSubstr("\"exit_code\": 1"), HasSubstr("\"lost\": []")));
}

TEST_P(Killed, BI6_TheDriverIsNamed) {
  Command command(folder_, kTicking, {"run", "t.toml"});
  ASSERT_TRUE(command.wait_for_line(moment(GetParam()))) << command.err();
  const pid_t pid = command.worker("ticker");
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), HasSubstr("error: ticker (pid " + std::to_string(pid) + ") was killed by signal 9"));
  EXPECT_TRUE(is_whole_csv(folder_.read(command.run_directory() + "/metrics.csv")));
}

TEST_F(Stopped, RN23_ADriverThatMissesItsGoalBecauseAnotherWasKilledIsNotBlamed) {
  Command command(folder_, kTicking,
                  {"run", "t.toml", "roles.ticker.replicas=2", "roles.ticker.config.together=2",
                   "roles.ticker.config.stop_fails=true"});
  ASSERT_TRUE(command.wait_for_line("tick 1")) << command.err();  // both are in run()
  ASSERT_TRUE(command.wait_for_line("  ticker-0")) << command.err();
  const pid_t pid = command.worker("ticker-0");
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(),
              AllOf(ContainsRegex("error: ticker-0 \\(pid " + std::to_string(pid) +
                                  "\\) was killed by signal 9 \\(SIGKILL\\)[^\n]*; ticker-1: goal_missed: too early"),
                    HasSubstr("start with log/ticker-0.log")));
  EXPECT_THAT(folder_.read(command.run_directory() + "/summary.json"),
              ContainsRegex("\"name\": \"ticker-0\"[^}]*\"was killed by signal 9"));
}

TEST_F(Stopped, BI6_M_WorkersThatAreStoppedDieWithTheirLauncher) {
  // Stopped workers cannot notice that the launcher has died: the kernel ends them.
  Command command(folder_, kTicking, {"run", "t.toml"});
  ASSERT_TRUE(command.wait_for_line("tick 5")) << command.err();
  for (const std::string name : {"ticker", "echo-0", "echo-1"}) {
    ASSERT_TRUE(command.wait_for_line("  " + name)) << command.err();
    ASSERT_GT(command.worker(name), 0);
    ASSERT_EQ(::kill(command.worker(name), SIGSTOP), 0);
  }
  command.signal(SIGKILL);
  EXPECT_EQ(command.wait(), 128 + SIGKILL);
  if (command.nothing_is_left(2s)) return;
  ADD_FAILURE() << "a stopped worker is left";
  for (const std::string name : {"ticker", "echo-0", "echo-1"}) ::kill(command.worker(name), SIGKILL);
}

TEST_P(Killed, BI6_WithTheLauncherAllEndWithinTwoSeconds) {
  Command command(folder_, kTicking, {"run", "t.toml"});
  ASSERT_TRUE(command.wait_for_line(GetParam() % 3 == 0 ? "ticking: seed" : moment(GetParam()))) << command.err();
  command.signal(SIGKILL);
  EXPECT_EQ(command.wait(), 128 + SIGKILL);
  EXPECT_TRUE(command.nothing_is_left(2s));
}

}  // namespace
}  // namespace caftan::test::kill_test
