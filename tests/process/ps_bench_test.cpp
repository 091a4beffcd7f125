// The benchmark of parameter servers as a user starts it: its reports, its update rules, a sweep over them, and what
// becomes of it when a worker is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::ps_bench_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kFile = kConfigs + "/ps_bench.test.toml";
const std::string kMaster = "roles.master.config.";

TEST(PsBench, ReportsEachWorkerAndAllTogether) {
  const Folder folder;
  const Finished run = run_to_end(folder, kCaftan, {"run", kFile});
  ASSERT_EQ(run.code, 0) << run.err;
  // 16 samples in batches of 4 are 2 batches of each trainer, and 3 epochs are measured; a batch has 3 buckets.
  EXPECT_THAT(run.out, AllOf(ContainsRegex("\ntrainer-1, ms +count +min +max +mean +variance +stdev\n"),
                             ContainsRegex("all trainers, ms[^\n]*\n  backward_metric,backward +12 "),
                             ContainsRegex("  hook_future_metric,rpc_sparse +12 "),
                             ContainsRegex("all servers, ms[^\n]*\n  method_metric,average computation +18 "),
                             ContainsRegex("parameter_server_straggler_metric,param_index_straggler +18 "),
                             ContainsRegex("measured: 12 batches of 2 trainers and 1 server, average_batch, in ")));
  EXPECT_THAT(folder.read("runs/latest/ps_bench_report.json"),
              AllOf(HasSubstr("\"rule\": \"average_batch\""), HasSubstr("\"trainer-0\": {"), HasSubstr("\"all\": {")));
  EXPECT_THAT(folder.read("runs/latest/ps_bench_report.csv"),
              HasSubstr("\ntrainer,all,\"batch_level_metric,batch_all\",12,"));
  EXPECT_THAT(
      folder.read("runs/latest/summary.json"),
      AllOf(HasSubstr("trainer_batch_all_ms"), HasSubstr("server_average_computation_ms"), HasSubstr("batches_per_s")));
}

TEST(PsBench, HasEveryRuleInEveryLayoutAndPlacement) {
  for (const std::string rule : {"average", "immediate"}) {
    for (const std::string layout : {"groups", "shards"}) {
      const Folder folder;
      const std::string placement = layout == "groups" ? "processes" : "one_process";
      const Finished run = run_to_end(
          folder, kCaftan,
          {"run", kFile, kMaster + "rule=" + rule, kMaster + "layout=" + layout, "run.placement=" + placement,
           "roles.server.replicas=2", "roles.trainer.replicas=4", kMaster + "warm_up=0"});
      ASSERT_EQ(run.code, 0) << rule << layout << run.err;
      EXPECT_THAT(run.out, HasSubstr("measured: 12 batches of 4 trainers and 2 servers, " + rule));
      const std::string table = rule == "average" ? "average computation" : "step computation";
      EXPECT_THAT(run.out, HasSubstr("method_metric," + table));
      EXPECT_EQ(run.out.find("param_index_straggler") == std::string::npos, rule == "immediate");
    }
  }
}

TEST(PsBench, ASweepComparesRules) {
  const Folder folder;
  const Finished sweep = run_to_end(
      folder, kCaftan,
      {"sweep", kFile, kMaster + "rule=average_batch,immediate", "roles.trainer.replicas=1,2", "--out", "rules"});
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  EXPECT_THAT(folder.read("rules/sweep.csv"), AllOf(HasSubstr("immediate"), HasSubstr("batches_per_s")));
}

TEST(PsBench, WhatCannotBeIsFoundBeforeAnythingStarts) {
  const Folder folder;
  const Finished groups = run_to_end(folder, kCaftan, {"check", kFile, "roles.server.replicas=3"});
  EXPECT_EQ(groups.code, 2);
  EXPECT_THAT(groups.err, HasSubstr("2 trainers cannot be dealt to 3 servers"));
  const Finished values = run_to_end(folder, kCaftan, {"run", kFile, kMaster + "data.max_value=33"});
  EXPECT_EQ(values.code, 2);
  EXPECT_THAT(values.err, HasSubstr("max_value is 33"));
  const Finished rule = run_to_end(folder, kCaftan, {"run", kFile, kMaster + "rule=sum"});
  EXPECT_EQ(rule.code, 2);
  EXPECT_THAT(rule.err, HasSubstr("average_batch"));
  EXPECT_EQ(run_to_end(folder, kCaftan, {"plan", kFile}).code, 0);
}

TEST(PsBench, AKilledWorkerEndsTheRunWithATypedError) {
  for (const std::string victim : {"master", "server", "trainer-1"}) {
    const Folder folder;
    Command command(folder, kCaftan,
                    {"run", kFile, kMaster + "epochs=1000000", "output.progress=plain", "output.every=100ms"});
    ASSERT_TRUE(command.wait_for_line("  " + victim)) << command.err();
    ASSERT_TRUE(command.wait_for_line("0:0")) << command.err() << command.out();
    ::kill(command.worker(victim), SIGKILL);
    EXPECT_EQ(command.wait(), 1) << victim;
    EXPECT_TRUE(command.nothing_is_left(0ms)) << victim;
    EXPECT_THAT(command.err(), HasSubstr(victim)) << victim;
    EXPECT_THAT(command.err(), HasSubstr("was killed by signal 9")) << victim;
    EXPECT_THAT(command.out(), Not(HasSubstr("measured:"))) << victim;
  }
}

}  // namespace
}  // namespace caftan::test::ps_bench_test
