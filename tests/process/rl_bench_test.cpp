// The benchmark of calls between an agent and observers as a user starts it: its report, and that of a sweep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::rl_bench_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const std::string kFile = kConfigs + "/rl_bench.test.toml";

TEST(RlBench, ReportsFourMetrics) {
  for (const std::string batch : {"true", "false"}) {
    const Folder folder;
    const Finished run = run_to_end(folder, kCaftan, {"run", kFile, "roles.agent.config.batch.enabled=" + batch});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, ContainsRegex("measured: 40 requests of 2 observers in [0-9.]+ s, [0-9]+ requests/s"));
    EXPECT_THAT(folder.read("runs/latest/benchmark_report.json"),
                AllOf(HasSubstr("\"world_size\": 4"), HasSubstr("\"batch\": " + batch),
                      HasSubstr("\"agent latency (seconds)\""), HasSubstr("\"agent throughput\""),
                      HasSubstr("\"observer latency (seconds)\""), HasSubstr("\"observer throughput\"")));
    EXPECT_THAT(folder.read("runs/latest/summary.json"), HasSubstr("observer_latency_p95"));
  }
}

TEST(RlBench, ASweepOverOneArgumentBecomesOneReport) {
  const Folder folder;
  const Finished sweep =
      run_to_end(folder, kCaftan, {"sweep", kFile, "roles.observer.replicas=1,2", "--out", "worlds"});
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  const Finished report = run_to_end(folder, kCaftan, {"rl_report", "worlds"});
  ASSERT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(report.out, AllOf(HasSubstr("x_axis_name : world_size"), HasSubstr("\n3  "), HasSubstr("\n4  ")));
  EXPECT_THAT(folder.read("worlds/benchmark_report.json"), HasSubstr("\"x_axis_name\": \"world_size\""));
  EXPECT_EQ(run_to_end(folder, kCaftan, {"rl_report", "worlds", "--out", "all.json"}).code, 0);
  EXPECT_EQ(folder.read("all.json"), folder.read("worlds/benchmark_report.json"));
}

TEST(RlBench, AReportThatCannotBeMadeIsRefused) {
  const Folder folder;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"rl_report"}, {"rl_report", "nowhere"}, {"rl_report", "a", "b"}, {"rl_report", "--out", "x"}}) {
    EXPECT_EQ(run_to_end(folder, kCaftan, words).code, 2);
  }
  const Finished sweep = run_to_end(folder, kCaftan, {"sweep", kFile, "run.seed=1..2", "--out", "seeds"});
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  const Finished refused = run_to_end(folder, kCaftan, {"rl_report", "seeds"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("these runs differ in none"));
}

TEST(RlBench, AStateSizeThatIsNoneIsFoundBeforeAnythingStarts) {
  const Folder folder;
  const Finished run = run_to_end(folder, kCaftan, {"run", kFile, "roles.agent.config.state_size=\"10-0\""});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("a state's size is 1 to 8 numbers from 1"));
}

TEST(RlBench, ALostObserverEndsTheRunWithATypedError) {
  const Folder folder;
  Command command(
      folder, kCaftan,
      {"run", kFile, "roles.coordinator.config.episodes=100000", "output.progress=plain", "output.every=100ms"});
  ASSERT_TRUE(command.wait_for_line("  observer-1")) << command.err();
  ASSERT_TRUE(command.wait_for_line("0:0")) << command.err() << command.out();
  ::kill(command.worker("observer-1"), SIGKILL);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.nothing_is_left(0ms));
  EXPECT_THAT(command.err(), HasSubstr("was killed by signal 9"));
}

}  // namespace
}  // namespace caftan::test::rl_bench_test
