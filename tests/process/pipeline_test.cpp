// The pipeline as a user runs it: the same bits in every placement, with every schedule of the same micro-batches, and
// after a resume; what cannot work is said; a killed process is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "command.hpp"
#include "lines.hpp"
#include "programs.hpp"

namespace caftan::test::pipeline_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kPipelineFile = kConfigs + "/pipeline.test.toml";
const std::string kMaster = "roles.master.config.";

class Pipeline : public ::testing::Test {
 protected:
  Finished run(std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.begin(), {"run", kPipelineFile});
    return run_to_end(folder_, kCaftan, overrides);
  }
  std::string fingerprint(const Finished& finished) const {
    EXPECT_EQ(finished.code, 0) << finished.err;
    const std::string line = line_with(finished.out, "fingerprint sha256:");
    EXPECT_THAT(line, StartsWith("fingerprint sha256:"));
    return line;
  }
  std::filesystem::path latest() const { return std::filesystem::canonical(folder_.path() / "runs/latest"); }
  Folder folder_;
};

TEST_F(Pipeline, LearnsAndShowsHowItsStagesWereUsed) {
  const Finished finished = run();
  fingerprint(finished);
  EXPECT_THAT(finished.out, AllOf(HasSubstr("trains mlp in 2 stages with 4 micro-batches of 20 images, 1f1b"),
                                  HasSubstr("of 200 test images, in evaluation mode\n"),
                                  ContainsRegex("stage-0 \\(fc1\\.\\.fc2\\): bubble [0-9]+ %, held at most 2 "
                                                "micro-batches, peak memory [0-9]+ MB \\([0-9]+ MB more than before"),
                                  ContainsRegex("stage-1 \\(fc3\\.\\.fc4\\): bubble [0-9]+ %, held at most 1 "
                                                "micro-batch, peak memory")));
  EXPECT_THAT(folder_.read("runs/latest/pipeline.svg"),
              AllOf(StartsWith("<svg "), HasSubstr(">stage-0 (fc1..fc2)</text>"), HasSubstr("<title>backward 3: ")));
  EXPECT_THAT(folder_.read("runs/latest/curve.csv"),
              AllOf(HasSubstr("\n60,master.train_loss,"), HasSubstr("\n60,master.accuracy,")));
}

TEST_F(Pipeline, GivesTheSameBitsInEveryPlacementAndSchedule) {
  const std::string goal = kMaster + "goal=0.0";  // bits are compared, not how well it learns
  const std::string few = kMaster + "batches=12";
  const std::string print = fingerprint(run({goal, few}));
  const Finished one = run({goal, few, "run.placement=one_process"});
  EXPECT_EQ(fingerprint(one), print);
  EXPECT_THAT(one.out, HasSubstr(" of its process, which has several workers\n"));
  const Finished all = run({goal, few, kMaster + "schedule=all_forward_then_backward"});
  EXPECT_EQ(fingerprint(all), print);
  EXPECT_THAT(all.out, HasSubstr("held at most 4 micro-batches"));
  EXPECT_EQ(fingerprint(run({goal, few, kMaster + "checkpoint_activations=true"})), print);
  EXPECT_EQ(fingerprint(run({goal, few, kMaster + "cuts=[\"fc2\",\"fc4\"]", "roles.stage.replicas=3"})), print);
  EXPECT_NE(fingerprint(run({goal, few, "run.seed=2"})), print);
}

TEST_F(Pipeline, GoesOnBitForBitAlsoWithOtherCuts) {
  const std::string goal = kMaster + "goal=0.0";
  const std::string print = fingerprint(run({goal, kMaster + "batches=30"}));
  fingerprint(run({goal, kMaster + "batches=20"}));
  const std::string stopped = latest().string();
  const Finished rest = run({goal, kMaster + "batches=30", kMaster + "resume=" + stopped});
  EXPECT_EQ(fingerprint(rest), print);
  EXPECT_THAT(rest.out, HasSubstr("resumed: step 20 of " + stopped + "\n"));
  const Finished cut = run({goal, kMaster + "batches=30", kMaster + "resume=" + stopped,
                            kMaster + "cuts=[\"fc2\",\"fc4\"]", "roles.stage.replicas=3"});
  EXPECT_EQ(fingerprint(cut), print);
  const Finished over = run({kMaster + "batches=10", kMaster + "resume=" + stopped});
  EXPECT_EQ(over.code, 2);
  EXPECT_THAT(over.err, HasSubstr("beyond batches = 10; raise batches"));
}

TEST_F(Pipeline, AResNetGivesTheSameBitsInEveryPlacement) {
  const std::vector<std::string> small{kMaster + "model=resnet18",    kMaster + "cuts=[\"layer3\"]",
                                       kMaster + "batch=4",           kMaster + "num_micro_batches=2",
                                       kMaster + "batches=2",         kMaster + "test_images=4",
                                       kMaster + "goal=0.0",          kMaster + "image_size=32",
                                       kMaster + "checkpoint.every=0"};
  const std::string print = fingerprint(run(small));
  std::vector<std::string> one = small;
  one.insert(one.end(), {"run.placement=one_process", kMaster + "checkpoint_activations=true"});
  EXPECT_EQ(fingerprint(run(one)), print);
}

class KilledPipeline : public Pipeline, public ::testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Victims, KilledPipeline, ::testing::Values("master", "stage-0", "stage-1"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(KilledPipeline, EndsTheRunByNameAndItGoesOnBitForBit) {
  const std::string goal = kMaster + "goal=0.0";
  Command command(folder_, kCaftan,
                  {"run", kPipelineFile, goal, kMaster + "batches=1000000", kMaster + "checkpoint.keep=1000"});
  ASSERT_TRUE(command.wait_for_line("checkpoint: batch 20 ")) << command.err();
  const pid_t pid = command.worker(GetParam());
  ASSERT_NE(pid, 0);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_THAT(command.err(),
              HasSubstr("error: " + GetParam() + " (pid " + std::to_string(pid) + ") was killed by signal 9"));
  EXPECT_TRUE(command.nothing_is_left(Seconds(5)));
  const std::string checkpoint = (latest() / "checkpoints/step-000020").string();
  const Finished rest = run({goal, kMaster + "batches=30", kMaster + "resume=" + checkpoint});
  EXPECT_EQ(fingerprint(rest), fingerprint(run({goal, kMaster + "batches=30"})));
}

TEST_F(Pipeline, EndsOnCtrlCWhileItTrains) {
  Command command(folder_, kCaftan, {"run", kPipelineFile, kMaster + "batches=1000000"});
  ASSERT_TRUE(command.wait_for_line("trains mlp"));
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(Seconds(5)));
}

struct Wrong {
  std::string name;
  std::vector<std::string> overrides;
  std::string says;
};

TEST_F(Pipeline, WhatCannotWorkIsSaidByCheckWithTheKey) {
  for (const Wrong& wrong : {
           Wrong{"micro_batch", {kMaster + "num_micro_batches=21"}, "num_micro_batches = 21, the batch has 20 images"},
           Wrong{"both", {kMaster + "micro_batch_size=5"}, "say the same thing twice"},
           Wrong{"no_cut", {kMaster + "cuts=[\"layer3\"]"}, "there is no layer \"layer3\"; mlp can be cut before: fc2"},
           Wrong{"one_worker", {"roles.stage.replicas=1"}, "stages"},
           Wrong{"many_workers", {"roles.stage.replicas=3"}, "cuts makes 2 stages, and there are 3 workers for them"},
       }) {
    std::vector<std::string> arguments{"check", kPipelineFile};
    arguments.insert(arguments.end(), wrong.overrides.begin(), wrong.overrides.end());
    const Finished checked = run_to_end(folder_, kCaftan, arguments);
    EXPECT_EQ(checked.code, 2) << wrong.name;
    EXPECT_THAT(checked.err, HasSubstr(wrong.says)) << wrong.name;
  }
  const Finished missed = run({kMaster + "goal=1.0", kMaster + "batches=1"});
  EXPECT_EQ(missed.code, 1);
  EXPECT_THAT(missed.err, HasSubstr("goal_missed"));
  const Finished diverged = run({kMaster + "optimizer.name=sgd", kMaster + "optimizer.lr=1000", kMaster + "goal=0.0"});
  EXPECT_EQ(diverged.code, 1);
  EXPECT_THAT(diverged.err, HasSubstr("the training has diverged"));
}

TEST_F(Pipeline, EveryShippedFileIsAcceptedAndPlanned) {
  for (const std::string file : {"pipeline.toml", "pipeline_resnet50.toml", "pipeline.test.toml"}) {
    for (const std::string command : {"check", "plan"}) {
      const Finished finished = run_to_end(folder_, kCaftan, {command, kConfigs + "/" + file});
      EXPECT_EQ(finished.code, 0) << command << ' ' << file << '\n' << finished.err;
    }
  }
}

}  // namespace
}  // namespace caftan::test::pipeline_test
