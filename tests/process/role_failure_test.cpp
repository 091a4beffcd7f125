// Runs that a role or a limit of the run ends: what they print, what they leave behind, what they return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::role_failure_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RoleFailures : public ::testing::TestWithParam<std::string> {
 protected:
  /// Runs the ticking program for three rounds, at the end of which the role that drives does what `end` says.
  static Finished run_ticking(const Folder& folder, const std::string& end,
                              const std::vector<std::string>& settings = {}) {
    folder.write("t.toml", ticking_file());
    std::vector<std::string> words{"run", "t.toml", "run.placement=" + GetParam(), "roles.ticker.config.rounds=3",
                                   "roles.ticker.config.end=" + end};
    words.insert(words.end(), settings.begin(), settings.end());
    return run_to_end(folder, kTicking, words);
  }
};
INSTANTIATE_TEST_SUITE_P(Placements, RoleFailures, ::testing::Values("one_process", "processes"));

TEST_P(RoleFailures, ARoleThatFailsEndsTheRunWithItsWords) {
  const Folder folder;
  const Finished failure = run_ticking(folder, "failure");
  EXPECT_EQ(failure.code, 1);
  EXPECT_THAT(failure.err, HasSubstr("error: ticker: goal_missed: not good enough\n"));
  EXPECT_THAT(failure.err, HasSubstr("ticking: failed after "));
  EXPECT_THAT(failure.out, Not(HasSubstr("seed ")));
  const Finished exception = run_ticking(folder, "exception");
  EXPECT_EQ(exception.code, 1);
  EXPECT_THAT(exception.err, AllOf(HasSubstr("error: ticker: remote_exception"), HasSubstr("out of luck")));
}

TEST_P(RoleFailures, AConstructorThatThrowsEndsTheRunWithItsWords) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run =
      run_to_end(folder, kTicking, {"run", "t.toml", "run.placement=" + GetParam(), "roles.echo.config.birth=throws"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: "), HasSubstr("stillborn")));
}

TEST_P(RoleFailures, BI2_AConstructorThatHangsIsNamedWithItsRole) {
  const Folder folder;
  // Long enough for the processes to be there on a slow machine beside other tests: only the constructor is missing.
  folder.write("t.toml", ticking_file("start_timeout = \"6s\"\n"));
  const Finished run =
      run_to_end(folder, kTicking, {"run", "t.toml", "run.placement=" + GetParam(), "roles.echo.config.birth=hangs"});
  EXPECT_EQ(run.code, 1);
  // In one process the error may name the ticker, too: it may wait for an echo whose constructor has no runner left.
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: start: the constructor"), HasSubstr("echo-0 (role 'echo')"),
                             HasSubstr(" not returned within 6s (run.start_timeout)")));
}

TEST_P(RoleFailures, AProcessThatASignalKillsIsNamed) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run =
      run_to_end(folder, kTicking, {"run", "t.toml", "run.placement=" + GetParam(), "roles.echo.config.birth=crashes"});
  if (GetParam() == "processes") {
    EXPECT_EQ(run.code, 1);
    EXPECT_THAT(run.err, AllOf(HasSubstr("error: echo-"), HasSubstr("was killed by signal 11")));
  } else {
    EXPECT_EQ(run.code, 128 + SIGSEGV);
    EXPECT_THAT(run.err, AllOf(HasSubstr("error: ticking (pid "), HasSubstr("was killed by signal 11"),
                               HasSubstr("runs/ticking-")));
  }
}

TEST_P(RoleFailures, U3_RN9_ARoleThatCallsExitFailsTheRunWithWordsAndASummary) {
  for (const std::string code : {"0", "2", "3"}) {
    const Folder folder;
    const Finished run = run_ticking(folder, "std_exit", {"roles.ticker.config.code=" + code});
    EXPECT_EQ(run.code, 1) << run.err;
    const std::string words = GetParam() == "processes"
                                  ? " exited with code " + code
                                  : "error: code of a role called exit(" + code +
                                        "), which ends all workers of this process (run.placement)\n";
    EXPECT_THAT(run.err, AllOf(HasSubstr(words), HasSubstr("ticking: failed after ")));
    EXPECT_THAT(folder.read("runs/latest/summary.json"),
                AllOf(HasSubstr("\"outcome\": \"failure\""), HasSubstr("exit")));
  }
}

TEST_P(RoleFailures, U3_U9_ACrashLeavesASummaryAndItsWords) {
  const Folder folder;
  const Finished run = run_ticking(folder, "crash");
  const std::string summary = folder.read("runs/latest/summary.json");
  EXPECT_THAT(run.err, HasSubstr("was killed by signal 11 (SIGSEGV)"));
  EXPECT_THAT(summary,
              AllOf(HasSubstr("\"outcome\": \"failure\""), HasSubstr("was killed by signal 11 (SIGSEGV)"),
                    HasSubstr("\"name\": \"echo-1\""), ::testing::ContainsRegex("\"duration_s\": [0-9]+\\.[0-9]+,")));
  if (GetParam() == "one_process") {
    EXPECT_EQ(run.code, 128 + SIGSEGV);
    EXPECT_THAT(summary, HasSubstr("\"exit_code\": 139"));
    return;
  }
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr(". Its log ends: the table is empty\n"), HasSubstr("start with log/ticker.log")));
  const std::string log = folder.read("runs/latest/log/ticker.log");
  EXPECT_THAT(log, HasSubstr("the table is empty\n-- killed by signal 11 (SIGSEGV); its calls:\n"));
  EXPECT_THAT(log.substr(log.find("its calls:\n") + 11), HasSubstr("caftan_ticking("));
}

TEST_P(RoleFailures, U9_TheLogOfARoleThatThrewSaysWhat) {
  const Folder folder;
  const Finished run = run_ticking(folder, "exception");
  EXPECT_THAT(run.err, HasSubstr("ticker.run: std::runtime_error: out of luck"));
  EXPECT_THAT(
      folder.read("runs/latest/log/ticker.log"),
      HasSubstr("run() returned an error: remote_exception: ticker: ticker.run: std::runtime_error: out of luck"));
}

TEST_P(RoleFailures, ResultsThatCannotBeWrittenFailTheRun) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const std::string command =
      "exec '" + std::string(kCounting) + "' run counting.toml run.placement=" + GetParam() + " >/dev/full";
  const Finished run = run_to_end(folder, "/bin/sh", {"-c", command});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("error: standard output: No space left on device; results are lost\n"));
  EXPECT_THAT(folder.read("runs/latest/summary.json"), HasSubstr("\"exit_code\": 1"));
}

TEST_P(RoleFailures, ARunThatTakesLongerThanItsWallFails) {
  const Folder folder;
  folder.write("t.toml", ticking_file("wall = \"1s\"\n"));
  const Finished run = run_to_end(folder, kTicking, {"run", "t.toml", "run.placement=" + GetParam()});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("error: the run took longer than 1s (run.wall)\n"));
}

TEST(RoleFailure, AWorkerThatExitsIsNamedWithItsCode) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run =
      run_to_end(folder, kTicking, {"run", "t.toml", "roles.ticker.config.rounds=3", "roles.ticker.config.end=exit"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: ticker (pid "), HasSubstr("exited with code 3")));
  EXPECT_THAT(run.err, HasSubstr("start with log/ticker.log"));
}

}  // namespace
}  // namespace caftan::test::role_failure_test
