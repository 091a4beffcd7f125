// Whole runs of real commands: what they print, what they leave behind, what they return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>
#include <utility>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::run_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string line_with(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at) - at);
}

/// Returns the lines of a run's output that must not depend on where its workers are.
std::string placeless(const std::string& out) {
  std::string kept;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const bool timed = line.starts_with("solved: ") || line.starts_with("runs/");
    if (!timed) kept += line + "\n";
  }
  return kept;
}

/// Returns the frames and bytes that the last run in a folder has sent, by kind; without `ping`, `pong` and
/// `membership.view`, which depend on time and placement.
std::string frames_sent(const Folder& folder) {
  const std::string summary = folder.read("runs/latest/summary.json");
  const std::size_t begin = summary.find("\"frames_sent\": {");
  std::string kept;
  std::istringstream lines(summary.substr(begin, summary.find("\n  }", begin) - begin));
  bool is_kept = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with("{"))
      is_kept = line.find("\"ping\"") == std::string::npos && line.find("\"pong\"") == std::string::npos &&
                line.find("\"membership.view\"") == std::string::npos;
    if (is_kept) kept += line + "\n";
  }
  return kept;
}

constexpr const char* kCountingFile =
    "caftan = 1\n[roles.counter]\ntype = \"counter\"\nreplicas = 2\n[roles.driver]\ntype = \"driver\"\n"
    "[roles.driver.config]\nrounds = 100\n[roles.driver.uses]\ncounters = \"counter\"\n";

class EachPlacement : public ::testing::TestWithParam<std::string> {
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
INSTANTIATE_TEST_SUITE_P(Placements, EachPlacement, ::testing::Values("one_process", "processes"));

TEST_P(EachPlacement, TheUsersProgramRunsAsPrinted) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const Finished run = run_to_end(folder, kCounting, {"run", "counting.toml", "run.placement=" + GetParam()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(": resolved.toml metrics.csv metrics.jsonl summary.json log/\n"));
  EXPECT_THAT(folder.read("runs/latest/summary.json"),
              AllOf(HasSubstr("\"outcome\": \"success\""), HasSubstr("\"driver.sum\": 100.0")));
  EXPECT_TRUE(is_whole_csv(folder.read("runs/latest/metrics.csv")));
}

TEST_P(EachPlacement, OutputOfACommandWithClosedDescriptorsStaysOutOfTheRunsFiles) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const std::string command =
      "exec '" + std::string(kCounting) + "' run counting.toml run.placement=" + GetParam() + " >&- 2>&- <&-";
  EXPECT_EQ(run_to_end(folder, "/bin/sh", {"-c", command}).code, 0);
  EXPECT_TRUE(is_whole_csv(folder.read("runs/latest/metrics.csv")));
  std::istringstream rows(folder.read("runs/latest/metrics.jsonl"));
  std::size_t count = 0;
  for (std::string row; std::getline(rows, row); ++count) EXPECT_THAT(row, StartsWith("{"));
  EXPECT_GT(count, 0U);
}

TEST_P(EachPlacement, CartPoleHasOneFingerprintInAllPlacementsAndWithAnyNumberOfObserversTheSameTwice) {
  for (const std::string replicas : {"1", "2", "4"}) {
    const Folder folder;
    const std::vector<std::string> in_one{"run", kConfigs + "/cartpole.test.toml", "run.placement=one_process",
                                          "roles.observer.replicas=" + replicas};
    std::vector<std::string> here = in_one;
    here[2] = "run.placement=" + GetParam();
    const Finished first = run_to_end(folder, kCaftan, in_one);
    const std::string frames = frames_sent(folder);
    const std::string curve = folder.read("runs/latest/curve.csv");
    const Finished second = run_to_end(folder, kCaftan, here);
    ASSERT_EQ(first.code, 0) << first.err;
    ASSERT_EQ(second.code, 0) << second.err;
    const std::string fingerprint = line_with(first.out, "fingerprint sha256:");
    EXPECT_THAT(fingerprint, StartsWith("fingerprint sha256:"));
    EXPECT_EQ(line_with(second.out, "fingerprint sha256:"), fingerprint) << replicas << " observers";
    EXPECT_THAT(folder.read("runs/latest/summary.json"),
                AllOf(HasSubstr(fingerprint.substr(12)), HasSubstr("\"frames_sent\": {\n    \"call\": {")));
    EXPECT_THAT(second.out, AllOf(HasSubstr("solved: "), HasSubstr("greedy evaluation: 3 episodes")));
    EXPECT_THAT(frames, AllOf(HasSubstr("\"method\": {"), HasSubstr("\"response\": {"), HasSubstr("\"down\": {")));
    EXPECT_EQ(frames_sent(folder), frames);
    EXPECT_THAT(curve, AllOf(StartsWith("step,name,value\r\n1,agent.loss,"), HasSubstr("\n2,agent.running_reward,")));
    EXPECT_EQ(folder.read("runs/latest/curve.csv"), curve) << replicas << " observers";
    EXPECT_EQ(placeless(second.out), placeless(first.out));
  }
}

TEST(Run, EachProtocolOfCartPoleSendsTheSameFramesInEveryPlacement) {
  for (const std::string protocol : {"fused", "rollout"}) {
    const Folder folder;
    std::vector<std::string> words{"run", kConfigs + "/cartpole.test.toml", "run.placement=one_process",
                                   "roles.observer.replicas=4", "roles.agent.config.protocol=" + protocol};
    const Finished in_one = run_to_end(folder, kCaftan, words);
    const std::string frames = frames_sent(folder);
    words[2] = "run.placement=processes";
    const Finished in_five = run_to_end(folder, kCaftan, words);
    ASSERT_EQ(in_one.code, 0) << in_one.err;
    ASSERT_EQ(in_five.code, 0) << in_five.err;
    EXPECT_THAT(frames, HasSubstr("\"method\": {"));
    EXPECT_EQ(frames_sent(folder), frames) << protocol;
    EXPECT_EQ(placeless(in_five.out), placeless(in_one.out)) << protocol;
  }
}

TEST_P(EachPlacement, ARoleThatFailsEndsTheRunWithItsWords) {
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

TEST_P(EachPlacement, AConstructorThatThrowsEndsTheRunWithItsWords) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run =
      run_to_end(folder, kTicking, {"run", "t.toml", "run.placement=" + GetParam(), "roles.echo.config.birth=throws"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: "), HasSubstr("stillborn")));
}

TEST_P(EachPlacement, BI2_AConstructorThatHangsIsNamedWithItsRole) {
  const Folder folder;
  folder.write("t.toml", ticking_file("start_timeout = \"2s\"\n"));
  const Finished run =
      run_to_end(folder, kTicking, {"run", "t.toml", "run.placement=" + GetParam(), "roles.echo.config.birth=hangs"});
  EXPECT_EQ(run.code, 1);
  // In one process the error may name the ticker, too: it may wait for an echo whose constructor has no runner left.
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: start: the constructor"), HasSubstr("echo-0 (role 'echo')"),
                             HasSubstr(" not returned within 2s (run.start_timeout)")));
}

TEST_P(EachPlacement, AProcessThatASignalKillsIsNamed) {
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

TEST_P(EachPlacement, U3_RN9_ARoleThatCallsExitFailsTheRunWithWordsAndASummary) {
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

TEST_P(EachPlacement, U3_U9_ACrashLeavesASummaryAndItsWords) {
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

TEST_P(EachPlacement, U9_TheLogOfARoleThatThrewSaysWhat) {
  const Folder folder;
  const Finished run = run_ticking(folder, "exception");
  EXPECT_THAT(run.err, HasSubstr("ticker.run: std::runtime_error: out of luck"));
  EXPECT_THAT(
      folder.read("runs/latest/log/ticker.log"),
      HasSubstr("run() returned an error: remote_exception: ticker: ticker.run: std::runtime_error: out of luck"));
}

TEST_P(EachPlacement, ResultsThatCannotBeWrittenFailTheRun) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const std::string command =
      "exec '" + std::string(kCounting) + "' run counting.toml run.placement=" + GetParam() + " >/dev/full";
  const Finished run = run_to_end(folder, "/bin/sh", {"-c", command});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("error: standard output: No space left on device; results are lost\n"));
  EXPECT_THAT(folder.read("runs/latest/summary.json"), HasSubstr("\"exit_code\": 1"));
}

TEST_P(EachPlacement, ARunThatTakesLongerThanItsWallFails) {
  const Folder folder;
  folder.write("t.toml", ticking_file("wall = \"1s\"\n"));
  const Finished run = run_to_end(folder, kTicking, {"run", "t.toml", "run.placement=" + GetParam()});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("error: the run took longer than 1s (run.wall)\n"));
}

TEST(Run, WorkersTalkOverTcpWhenTheFileSaysSo) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const Finished run = run_to_end(folder, kCounting, {"run", "counting.toml", "cluster.channel=tcp"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("channel tcp"));
  EXPECT_THAT(folder.read("runs/latest/log/driver.log"), HasSubstr("over tcp"));
}

TEST(Run, T8_EachRoleOfOneProcessMayWaitHoweverManyThereAre) {
  const Folder folder;
  folder.write("t.toml",
               ticking_file("placement = \"one_process\"\nstart_timeout = \"20s\"\nstop_timeout = \"20s\"\n"));
  // 128 threads are there for calls; the threads for run() of the roles come in addition.
  const Finished run = run_to_end(folder, kTicking,
                                  {"run", "t.toml", "roles.ticker.replicas=130", "roles.ticker.config.together=130",
                                   "roles.ticker.config.rounds=1"});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(Run, AWorkerThatExitsIsNamedWithItsCode) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run =
      run_to_end(folder, kTicking, {"run", "t.toml", "roles.ticker.config.rounds=3", "roles.ticker.config.end=exit"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("error: ticker (pid "), HasSubstr("exited with code 3")));
  EXPECT_THAT(run.err, HasSubstr("start with log/ticker.log"));
}

TEST(Run, StreamsOfRandomNumbersDependOnTheSeedOnly) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const auto seed_line = [&](const std::string& seed, const std::string& placement) {
    const Finished run =
        run_to_end(folder, kTicking, {"run", "t.toml", "roles.ticker.config.rounds=1", "run.seed=" + seed, placement});
    return line_with(run.out, "seed ");
  };
  const std::string first = seed_line("5", "run.placement=one_process");
  EXPECT_THAT(first, StartsWith("seed "));
  EXPECT_EQ(seed_line("5", "run.placement=processes"), first);
  EXPECT_NE(seed_line("6", "run.placement=one_process"), first);
}

TEST(CommandLine, BadOnesAndBadFilesAnswerTwo) {
  const Folder folder;
  folder.write("bad.toml", "caftan = 1\n[roles.x]\ntype = \"cartpol.agent\"\n");
  EXPECT_EQ(run_to_end(folder, kCaftan, {}).code, 2);
  EXPECT_EQ(run_to_end(folder, kCaftan, {"fly", "x.toml"}).code, 2);
  EXPECT_EQ(run_to_end(folder, kCaftan, {"run"}).code, 2);
  EXPECT_EQ(run_to_end(folder, kCaftan, {"run", "missing.toml"}).code, 2);
  EXPECT_EQ(run_to_end(folder, kCaftan, {"help", "cartpol.agent"}).code, 2);
  EXPECT_EQ(run_to_end(folder, kCaftan, {"run", kConfigs + "/cartpole.toml", "--role", "agent"}).code, 2);
  for (const std::string command : {"check", "run", "plan"}) {
    const Finished bad = run_to_end(folder, kCaftan, {command, "bad.toml"});
    EXPECT_EQ(bad.code, 2);
    EXPECT_THAT(bad.err, HasSubstr("bad.toml:3:8: error: no role type 'cartpol.agent' in this program; did you mean "
                                   "'cartpole.agent'?"));
    EXPECT_EQ(bad.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs"));
}

TEST(CommandLine, TextThatCannotBeWrittenFails) {
  const Folder folder;
  for (const std::string& command :
       {std::string("help"), std::string("--version"), "plan " + kConfigs + "/cartpole.toml"}) {
    const Finished full = run_to_end(folder, "/bin/sh", {"-c", "exec '" + kCaftan + "' " + command + " >/dev/full"});
    EXPECT_EQ(full.code, 1) << command;
    EXPECT_THAT(full.err, HasSubstr("error: standard output: No space left on device\n")) << command;
  }
}

TEST(CommandLine, AnOutputFolderThatCannotBeMadeIsNamedByItsKey) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  folder.write("file", "");
  const std::string reason = "output.dir \"file/runs\": file/runs: Not a directory";
  const Finished run = run_to_end(folder, kCounting, {"run", "counting.toml", "output.dir=file/runs"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("command line: error: output.dir=file/runs: " + reason));
  const Finished check = run_to_end(folder, kCounting, {"check", "counting.toml", "output.dir=file/runs"});
  EXPECT_EQ(check.code, 0);
  EXPECT_THAT(check.err, HasSubstr("command line: warning: output.dir=file/runs: " + reason));
}

TEST(CommandLine, AFolderWithANulIsRefused) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const Finished run = run_to_end(folder, kCounting, {"run", "counting.toml", "output.dir=\"b\\u0000c\""});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("dir must be a path without control characters"));
}

TEST(CommandLine, AWrongCommandIsNamedWithTheRightOnes) {
  const Folder folder;
  const std::string usage =
      "usage: counting run|check|plan FILE [KEY=VALUE ...], counting sweep FILE KEY=VALUES ..., counting plot RUN ..., "
      "counting help [TYPE | file | COMMAND], counting --version\n";
  const auto refused = [&](const std::vector<std::string>& words) {
    const Finished finished = run_to_end(folder, kCounting, words);
    EXPECT_EQ(finished.code, 2);
    return finished.err;
  };
  EXPECT_EQ(refused({}), "error: the command is missing\n" + usage);
  EXPECT_EQ(refused({"nonsense"}), "error: no command 'nonsense'\n" + usage);
  EXPECT_EQ(refused({"chek", "a.toml"}), "error: no command 'chek'; did you mean 'check'?\n" + usage);
  EXPECT_EQ(refused({"version"}), "error: no command 'version'; did you mean '--version'?\n" + usage);
  EXPECT_EQ(refused({"-V"}), "error: no command '-V'\n" + usage);
  EXPECT_EQ(refused({"a\nb"}), "error: no command 'a?b'\n" + usage);
  EXPECT_EQ(refused({"--version", "x"}), "error: nothing may follow --version, there is 'x'\n" + usage);
  EXPECT_EQ(refused({"run", "a.toml", "--role", "driver", "--replica", "-1"}),
            "--replica: replicas are numbered from 0, is -1\nRun with --help for more information.\n");
}

TEST(CommandLine, U13_TheErrorOfAnOptionThatIsASettingSaysHowToWriteIt) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  for (const std::vector<std::string>& given : {std::vector<std::string>{"--seed", "3"}, {"--seed=3"}}) {
    std::vector<std::string> words{"run", "counting.toml"};
    words.insert(words.end(), given.begin(), given.end());
    const Finished run = run_to_end(folder, kCounting, words);
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("settings stand as KEY=VALUE behind FILE: write run.seed=3\n"));
  }
  EXPECT_THAT(run_to_end(folder, kCounting, {"run", "counting.toml", "--rpc-timeout"}).err,
              HasSubstr("write cluster.rpc_timeout=...\n"));
  EXPECT_THAT(run_to_end(folder, kCounting, {"run", "counting.toml", "--verbose"}).err,
              Not(HasSubstr("KEY=VALUE behind")));
}

TEST(CommandLine, U22_APlotThatCannotBeDrawnSaysWhy) {
  const Folder folder;
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "plot");
    const Finished finished = run_to_end(folder, kCounting, words);
    EXPECT_EQ(finished.code, 2);
    return finished.err;
  };
  EXPECT_EQ(refused({"none"}), "error: none: there is no such folder of a run\n");
  EXPECT_EQ(refused({"none", "--x", "epoch"}), "error: --x is step or time, here it is 'epoch'\n");
  EXPECT_THAT(refused({}), HasSubstr("RUN is required"));
  std::filesystem::create_directory(folder.path() / "run");
  folder.write("run/curve.csv", "step,name,value\r\n1,agent.loss,0.5\r\n");
  EXPECT_EQ(refused({"run", "--metric", "los"}),
            "error: no run has a metric 'los'; did you mean 'loss'? There are: loss\n");
  EXPECT_THAT(refused({"run", "--out", "no/plot.svg"}), HasSubstr("No such file or directory"));
}

TEST(CommandLine, U13_HelpExplainsCommandsToo) {
  const Folder folder;
  for (const std::string command : {"run", "check", "plan", "sweep"}) {
    const Finished help = run_to_end(folder, kCounting, {"help", command});
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_THAT(help.out, HasSubstr("KEY=VALUE"));
    EXPECT_EQ(help.out, run_to_end(folder, kCounting, {command, "--help"}).out);
  }
  for (const auto& [command, option] :
       {std::pair("plot", "--smooth"), std::pair("help", "TOPIC"), std::pair("new", "--from")}) {
    const Finished help = run_to_end(folder, kCaftan, {"help", command});
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_THAT(help.out, HasSubstr(option));
    EXPECT_EQ(help.out, run_to_end(folder, kCaftan, {command, "--help"}).out);
  }
  const Finished wrong = run_to_end(folder, kCaftan, {"help", "swep"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err,
              StartsWith("error: no command and no role type 'swep' in this program; did you mean 'sweep'?\n"));
}

TEST_P(EachPlacement, U13_WhoIsReadyStandsBeforeTheFirstResults) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const Finished run = run_to_end(
      folder, "/bin/sh",
      {"-c", "exec '" + kTicking + "' run t.toml roles.ticker.config.rounds=50 run.placement=" + GetParam() + " 2>&1"});
  ASSERT_EQ(run.code, 0) << run.out;
  EXPECT_LT(run.out.rfind(" ready after "), run.out.find("\ntick 1\n")) << run.out;
}

TEST(CommandLine, AFileNameCannotMoveTheCursor) {
  const Folder folder;
  folder.write("a\nb.toml", kCountingFile);
  EXPECT_THAT(run_to_end(folder, kCounting, {"check", "a\nb.toml"}).out, StartsWith("a?b.toml is valid: "));
}

TEST(CommandLine, AProcessThatCannotBeStartedFailsTheRun) {
  const Folder folder;
  folder.write("counting.toml", kCountingFile);
  const Finished run = run_to_end(folder, "/bin/sh", {"-c", "ulimit -n 14; exec " + kCounting + " run counting.toml"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.err, HasSubstr("Too many open files"));
}

TEST(CommandLine, CheckPlanAndHelpStartNothing) {
  const Folder folder;
  const Finished check = run_to_end(folder, kCaftan, {"check", kConfigs + "/cartpole.toml"});
  EXPECT_EQ(check.code, 0);
  EXPECT_THAT(check.out, HasSubstr("cartpole.toml is valid: 2 roles, 2 workers\n"));
  const Finished plan = run_to_end(folder, kCaftan, {"plan", kConfigs + "/cartpole.toml", "roles.observer.replicas=3"});
  EXPECT_EQ(plan.code, 0);
  EXPECT_THAT(plan.out, AllOf(HasSubstr("observer-2"), HasSubstr("4 workers in 4 processes")));
  const Finished help = run_to_end(folder, kCaftan, {"help", "cartpole.agent"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("running_average"), HasSubstr("observers")));
  EXPECT_THAT(run_to_end(folder, kCaftan, {"help"}).out, HasSubstr("cartpole.observer"));
  EXPECT_EQ(run_to_end(folder, kCaftan, {"help", "file"}).out, folder.read(kConfigs + "/../docs/configuration.md"));
  EXPECT_THAT(run_to_end(folder, kCaftan, {"--version"}).out, StartsWith("caftan 0."));
  EXPECT_EQ(run_to_end(folder, CAFTAN_SCRIPT, {"--version"}).out, run_to_end(folder, kCaftan, {"--version"}).out);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs"));
}

}  // namespace
}  // namespace caftan::test::run_test
