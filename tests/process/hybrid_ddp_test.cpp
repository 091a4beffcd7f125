// Hybrid data parallelism as a user runs it: any placement and a resumed run give the same bits, replicas stay equal,
// and a killed process is named, by the launcher and by all other trainers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "caftan/collectives/collectives.hpp"
#include "command.hpp"
#include "lines.hpp"
#include "programs.hpp"

namespace caftan::test::hybrid_ddp_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHybridFile = kConfigs + "/hybrid_ddp.test.toml";
const std::string kMaster = "roles.master.config.";

class HybridDdp : public ::testing::Test {
 protected:
  Finished run(std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.begin(), {"run", kHybridFile});
    return run_to_end(folder_, kCaftan, overrides);
  }
  Folder folder_;
};

TEST_F(HybridDdp, LearnsTheSameBitsInEveryPlacement) {
  const Finished one = run({"run.placement=one_process"});
  ASSERT_EQ(one.code, 0) << one.err;
  const std::string curve = folder_.read("runs/latest/curve.csv");
  const Finished two = run({"run.placement=processes"});
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.out, AllOf(HasSubstr("replicas equal: 60 steps, hash "), HasSubstr("times the largest class")));
  EXPECT_EQ(line_with(two.out, "fingerprint sha256:"), line_with(one.out, "fingerprint sha256:"));
  EXPECT_EQ(line_with(two.out, "replicas equal"), line_with(one.out, "replicas equal"));
  EXPECT_EQ(folder_.read("runs/latest/curve.csv"), curve);
  // The heading, 60 losses of each trainer, and an accuracy after 20, 40 and 60 steps.
  EXPECT_EQ(std::ranges::count(curve, '\n'), 1 + 2 * 60 + 3);
}

TEST_F(HybridDdp, ThreeReplicasAndSmallBucketsStayEqual) {
  const Finished three = run({"roles.trainer.replicas=3", kMaster + "bucket=1", kMaster + "sparse=false"});
  EXPECT_EQ(three.code, 0) << three.err;
  EXPECT_THAT(three.out, HasSubstr("replicas equal: 60 steps"));
}

TEST_F(HybridDdp, GlooCarriesTheSameTraining) {
  const Finished gloo = run({kMaster + "backend=gloo", "run.placement=processes"});
  if (!collectives::has_gloo()) {
    EXPECT_EQ(gloo.code, 2);
    EXPECT_THAT(gloo.err, HasSubstr("libgloo-dev"));
    return;
  }
  EXPECT_EQ(gloo.code, 0) << gloo.err;
  EXPECT_THAT(gloo.out, AllOf(HasSubstr("over gloo"), HasSubstr("replicas equal: 60 steps")));
}

TEST_F(HybridDdp, AResumedRunEndsWithTheSameBits) {
  const Finished whole = run();
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_EQ(run({kMaster + "max_steps=40", kMaster + "goal=0.1"}).code, 0);
  const std::string first = std::filesystem::canonical(folder_.path() / "runs/latest").string();
  const Finished rest = run({kMaster + "resume=" + first});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("resumed: step 40 of "));
  EXPECT_EQ(line_with(rest.out, "fingerprint sha256:"), line_with(whole.out, "fingerprint sha256:"));
  const Finished other = run({kMaster + "resume=" + first, "roles.trainer.replicas=3"});
  EXPECT_EQ(other.code, 2) << "found before anything starts";
  EXPECT_THAT(other.err, HasSubstr("trainers = 2, here it is 3"));
  const Finished texts = run({kMaster + "resume=" + first, "roles.trainer.config.corpus.name=common-licenses"});
  EXPECT_EQ(texts.code, 1);
  EXPECT_THAT(texts.err, HasSubstr("a checkpoint of a training with other texts"));
}

TEST_F(HybridDdp, AMissedGoalFails) {
  const Finished missed = run({kMaster + "goal=50", kMaster + "max_steps=2"});
  EXPECT_EQ(missed.code, 1);
  EXPECT_THAT(missed.err, AllOf(HasSubstr("master: goal_missed: accuracy "), HasSubstr("the goal is 50.0 times")));
}

TEST_F(HybridDdp, WhatIsWrongIsNamedBeforeAnythingStarts) {
  const Finished one = run({"roles.trainer.replicas=1"});
  EXPECT_EQ(one.code, 2);
  const Finished text = run({"roles.trainer.config.corpus.path=" + folder_.path().string() + "/nowhere"});
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.err, HasSubstr("nowhere: there is no such file"));
  const Finished words = run({"roles.trainer.config.words=5000"});
  EXPECT_EQ(words.code, 2);
  EXPECT_THAT(words.err, HasSubstr("lower words"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs"));
}

TEST_F(HybridDdp, ADivergedTrainingNamesTheLearningRate) {
  const Finished diverged = run({kMaster + "optimizer.name=sgd", kMaster + "optimizer.lr=1000"});
  EXPECT_EQ(diverged.code, 1);
  EXPECT_THAT(diverged.err, HasSubstr("lr"));
  EXPECT_THAT(diverged.out, Not(HasSubstr("trained: ")));
}

class KilledHybrid : public HybridDdp, public ::testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Victims, KilledHybrid, ::testing::Values("master", "ps", "trainer-0", "trainer-2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(KilledHybrid, IsNamedByTheLauncherAndByTheOtherTrainers) {
  Command command(
      folder_, kCaftan,
      {"run", kHybridFile, kMaster + "max_steps=1000000", "roles.trainer.replicas=3", "run.placement=processes"});
  ASSERT_TRUE(command.wait_for_line("checkpoint: step 20 ")) << command.err();
  const pid_t pid = command.worker(GetParam());
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_TRUE(command.nothing_is_left(2s));
  EXPECT_THAT(command.err(),
              HasSubstr("error: " + GetParam() + " (pid " + std::to_string(pid) + ") was killed by signal 9"));
  if (!GetParam().starts_with("trainer")) return;
  for (const std::string other : {"trainer-0", "trainer-1", "trainer-2"}) {
    if (other == GetParam()) continue;
    EXPECT_THAT(folder_.read("runs/latest/log/" + other + ".log"),
                AllOf(HasSubstr("the training ended here: "), HasSubstr("peer_down"), HasSubstr(GetParam())));
  }
}

}  // namespace
}  // namespace caftan::test::hybrid_ddp_test
