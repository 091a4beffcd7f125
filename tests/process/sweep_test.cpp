// Whole sweeps of real commands: their runs, what they leave behind, how they go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::sweep_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Returns how many runs have written into the folder of one run of a sweep.
std::ptrdiff_t runs_in(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::count_if(begin(entries), end(entries), [](const std::filesystem::directory_entry& entry) {
    return entry.path().filename().string().starts_with("ticking-");
  });
}

TEST(Sweep, NamesTheRunThatFailedAndGoesOnWithIt) {
  const Folder folder;
  folder.write("t.toml", ticking_file("placement = \"one_process\"\n", "[roles.ticker.config]\nrounds = 2\n"));
  folder.write("here", "");
  const std::vector<std::string> command{"sweep",
                                         "t.toml",
                                         "roles.ticker.config.end=success,failure",
                                         "roles.ticker.config.cure=here,missing",
                                         "--jobs",
                                         "2",
                                         "--out=the sweep",
                                         "--metric",
                                         "round"};
  const Finished first = run_to_end(folder, kTicking, command);
  EXPECT_EQ(first.code, 1);
  EXPECT_THAT(first.err, AllOf(HasSubstr("error: run 004 (roles.ticker.config.end=failure "
                                         "roles.ticker.config.cure=missing) ended with exit code 1 (ticker: "
                                         "goal_missed: not good enough); its log is "),
                               HasSubstr("error: 1 of 4 runs failed, 1 of them with goal_missed:\n  004 "),
                               HasSubstr("=missing)  goal_missed, folder ")));
  EXPECT_THAT(folder.read("the sweep/004/output.log"), HasSubstr("not good enough"));
  EXPECT_THAT(
      folder.read("the sweep/sweep.csv"),
      AllOf(HasSubstr(",n,missed,ticker.round.n,ticker.round.mean,ticker.round.half\nsuccess,here,1,0,1,2.0,\n"),
            HasSubstr("\nfailure,missing,1,1,1,2.0,\n")));

  folder.write("missing", "");
  const Finished second = run_to_end(folder, kTicking, command);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("sweep of 4 runs, 3 of which have succeeded before, in "));
  EXPECT_THAT(second.out, ::testing::ContainsRegex("\nfailure +missing +1  2\n"));
  EXPECT_EQ(runs_in(folder.path() / "the sweep/001"), 1);
  EXPECT_EQ(runs_in(folder.path() / "the sweep/004"), 2);

  std::vector<std::string> other = command;
  other[3] = "roles.ticker.config.cure=here";
  const Finished refused = run_to_end(folder, kTicking, other);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("is the folder of another sweep: the keys are others"));
}

TEST(Sweep, SeedsAreRepetitionsOfOneRow) {
  const Folder folder;
  folder.write("t.toml", ticking_file("placement = \"one_process\"\n"));
  const Finished sweep = run_to_end(
      folder, kTicking, {"sweep", "t.toml", "run.seed=1..2", "roles.ticker.config.rounds=3", "--metric=round"});
  EXPECT_EQ(sweep.code, 0) << sweep.err;
  EXPECT_THAT(sweep.out, ::testing::ContainsRegex("\n3 +2  3 [+]- 0\n"));
  EXPECT_THAT(sweep.out, HasSubstr("/runs/ticking-sweep-"));
}

TEST(Sweep, AWrongMetricIsNamedOnceARunHasEndedAndTheTableShowsAll) {
  const Folder folder;
  folder.write("t.toml", ticking_file("placement = \"one_process\"\n"));
  const Finished sweep = run_to_end(
      folder, kTicking, {"sweep", "t.toml", "run.seed=1..2", "roles.ticker.config.rounds=3", "--metric=rond"});
  EXPECT_EQ(sweep.code, 2);
  const std::string text = "--metric: no run has a metric 'rond'; did you mean 'round'? There are: ticker.round. The ";
  const std::size_t warned = sweep.err.find("warning: " + text + "sweep goes on");
  EXPECT_LT(warned, sweep.err.find("002 (run.seed=2)  succeeded")) << sweep.err;
  EXPECT_THAT(sweep.err, HasSubstr("error: " + text + "table shows all of them\n"));
  EXPECT_THAT(sweep.out, testing::ContainsRegex(" ticker[.]round\n3 +2  3 [+]- 0\n"));
}

TEST(Sweep, ChecksAllRunsBeforeTheFirstOneStarts) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  const auto refusal_of = [&](const std::string& assignment) {
    const Finished refused = run_to_end(folder, kTicking, {"sweep", "t.toml", assignment, "--out", "s"});
    EXPECT_EQ(refused.code, 2) << assignment;
    return refused.err;
  };
  EXPECT_THAT(
      refusal_of("roles.ticker.config.rounds=1,0"),
      AllOf(HasSubstr("error: of the run with roles.ticker.config.rounds=0:\n"), Not(HasSubstr("have errors"))));
  EXPECT_THAT(refusal_of("run.seed=2..1"), HasSubstr("counts down"));
  EXPECT_THAT(refusal_of("output.dir=a,b"), HasSubstr("--out DIR"));
  EXPECT_THAT(refusal_of("run.placement=hosts"), HasSubstr("host"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "s"));
  folder.write("file", "");
  EXPECT_EQ(run_to_end(folder, kTicking, {"sweep", "t.toml", "run.seed=1,2", "--out", "file"}).code, 2);
  EXPECT_THAT(run_to_end(folder, kTicking, {"sweep", "t.toml", "run.seed=1,2", "--out", "."}).err,
              HasSubstr("is not empty, and no sweep was begun in it"));
  EXPECT_EQ(run_to_end(folder, kTicking, {"sweep", "t.toml"}).code, 2);
}

TEST(Sweep, BI8_CtrlCEndsItsRunsAndLeavesThemToBeRunAgain) {
  const Folder folder;
  folder.write("t.toml", ticking_file());
  Command command(folder, kTicking, {"sweep", "t.toml", "run.seed=1..3", "--jobs", "2", "--out", "s"});
  ASSERT_TRUE(command.wait_for_line("0:0"));
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), HasSubstr("sweep: interrupted, 0 of 3 runs have succeeded; the same command with --out "));
  EXPECT_THAT(folder.read("s/sweep.toml"), AllOf(HasSubstr("succeeded = []\n"), HasSubstr("failed = []\n")));
}

}  // namespace
}  // namespace caftan::test::sweep_test
