// Command lines that start no run, or that are refused: what they print, what they return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::command_line_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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

TEST(CommandLine, U22_PlotDrawsSeveralRunsIntoTheNamedFile) {
  const Folder folder;
  for (const std::string run : {"cartpole-1", "cartpole-2"}) {
    std::filesystem::create_directory(folder.path() / run);
    folder.write(run + "/curve.csv", "step,name,value\r\n1,agent.running_reward,9\r\n2,agent.running_reward,12.5\r\n");
  }
  const Finished drawn = run_to_end(
      folder, kCaftan,
      {"plot", "cartpole-1", "cartpole-2", "--metric", "running_reward", "--smooth", "0.9", "--out", "reward.svg"});
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_THAT(folder.read("reward.svg"), HasSubstr("running_reward"));
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
}  // namespace caftan::test::command_line_test
