// The batch-updating parameter server as a user runs it: any placement gives the same bits, it goes on from a
// checkpoint, and without a trainer if the file says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "command.hpp"
#include "image_files.hpp"
#include "lines.hpp"
#include "programs.hpp"

namespace caftan::test::batch_parameter_server_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kServerFile = kConfigs + "/batch_parameter_server.test.toml";
const std::string kData = "roles.trainer.config.data.";
const std::string kServer = "roles.server.config.";

class BatchServer : public ::testing::Test {
 protected:
  static std::vector<std::string> command(const std::string& name, std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {name, kServerFile});
    return overrides;
  }
  Finished run(const std::vector<std::string>& overrides) const {
    return run_to_end(folder_, kCaftan, command("run", overrides));
  }
  std::filesystem::path latest() const { return std::filesystem::canonical(folder_.path() / "runs/latest"); }
  Folder folder_;
};

TEST_F(BatchServer, LearnsTheSameBitsInEveryPlacement) {
  const Finished one = run({"run.placement=one_process"});
  ASSERT_EQ(one.code, 0) << one.err;
  const std::string curve = folder_.read("runs/latest/curve.csv");
  const Finished many = run({"run.placement=processes"});
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_THAT(line_with(one.out, "fingerprint sha256:"), StartsWith("fingerprint sha256:"));
  EXPECT_EQ(line_with(many.out, "fingerprint sha256:"), line_with(one.out, "fingerprint sha256:"));
  EXPECT_EQ(folder_.read("runs/latest/curve.csv"), curve);
  EXPECT_THAT(many.out, AllOf(HasSubstr("trains convnet, 1199882 parameters, with 3 trainers\n"),
                              HasSubstr("trained: 30 rounds of 3 trainers, loss "),
                              HasSubstr(" % of 500 test images, in evaluation mode\n")));
  // The heading; loss and number of gradients of each round; the loss of each trainer; three measurements.
  EXPECT_EQ(std::ranges::count(curve, '\n'), 1 + 30 * 2 + 30 * 3 + 3);
  EXPECT_THAT(curve, AllOf(HasSubstr("\n30,server.accuracy,"), HasSubstr("\n17,trainer-2.train_loss,"),
                           HasSubstr("\n30,server.gradients,3\r")));
  EXPECT_TRUE(is_whole_csv(folder_.read("runs/latest/metrics.csv")));
  EXPECT_THAT(folder_.read("runs/latest/metrics.csv"), HasSubstr("images_per_s"));
}

TEST_F(BatchServer, AResumedTrainingEndsWithTheSameBits) {
  const Finished whole = run({});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const Finished first = run({kServer + "rounds=20", kServer + "goal=0.0"});
  ASSERT_EQ(first.code, 0) << first.err;
  const std::filesystem::path stopped = latest();
  const Finished rest = run({kServer + "resume=" + stopped.string()});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("resumed: step 20 of " + stopped.string() + "\n"));
  EXPECT_EQ(line_with(rest.out, "fingerprint sha256:"), line_with(whole.out, "fingerprint sha256:"));
  const Finished done = run({kServer + "resume=" + latest().string()});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("nothing to train: the checkpoint stands at step 30 and rounds is 30"),
                              HasSubstr(line_with(whole.out, "fingerprint sha256:"))));
  const Finished other = run({kServer + "resume=" + stopped.string(), "roles.trainer.replicas=2"});
  EXPECT_EQ(other.code, 2) << "found before anything starts";
  EXPECT_THAT(other.err, HasSubstr("a checkpoint of another training: trainers = 3, here it is 2"));
}

TEST_F(BatchServer, GoesOnWithoutATrainerThatWasKilled) {
  Command command(folder_, kCaftan,
                  BatchServer::command(
                      "run", {"roles.trainer.on_loss=go_on", kServer + "quorum=2", kServer + "straggler_timeout=20ms",
                              "run.deterministic=false", kServer + "rounds=60", kServer + "evaluate_every=0"}));
  ASSERT_TRUE(command.wait_for_line("trains convnet"));
  ASSERT_NE(command.worker("trainer-1"), 0);
  ASSERT_EQ(::kill(command.worker("trainer-1"), SIGKILL), 0);
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_THAT(command.err(), HasSubstr("trainer-1"));
  EXPECT_THAT(command.out(), AllOf(HasSubstr("trained: 60 rounds of 3 trainers"), HasSubstr("of 500 test images")));
}

TEST_F(BatchServer, EachRoundIsShownOnceWhileItsEndIsGoingOn) {
  // With a quorum of one the other trainer's gradient can fill the next round while the accuracy is measured.
  const Finished finished = run({"roles.trainer.replicas=2", "run.deterministic=false", kServer + "quorum=1",
                                 kServer + "straggler_timeout=1ms", kServer + "rounds=15", kServer + "evaluate_every=1",
                                 kServer + "goal=0.0", kServer + "checkpoint.every=7", kServer + "checkpoint.keep=10"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const std::string curve = folder_.read("runs/latest/curve.csv");
  for (int round = 1; round <= 15; ++round) {
    for (const char* const metric : {"loss", "gradients", "accuracy"}) {
      const std::string row = "\n" + std::to_string(round) + ",server." + metric + ",";
      const std::size_t first = curve.find(row);
      EXPECT_NE(first, std::string::npos) << row;
      EXPECT_EQ(curve.find(row, first + 1), std::string::npos) << "twice:" << row;
    }
  }
  for (const char* const step : {"07", "14", "15"}) {
    const std::string file = "runs/latest/checkpoints/step-0000" + std::string(step);
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / file)) << file;
  }
}

TEST_F(BatchServer, EndsWhenNoQuorumIsLeft) {
  Command command(folder_, kCaftan,
                  BatchServer::command(
                      "run", {"roles.trainer.on_loss=go_on", kServer + "rounds=100000", kServer + "evaluate_every=0"}));
  ASSERT_TRUE(command.wait_for_line("trains convnet"));
  ASSERT_EQ(::kill(command.worker("trainer-1"), SIGKILL), 0);
  EXPECT_EQ(command.wait(), 1);
  EXPECT_THAT(command.err(), HasSubstr("trainer-1"));
  EXPECT_TRUE(command.nothing_is_left(Seconds(5)));
}

TEST_F(BatchServer, EndsOnCtrlCWhileItWaits) {
  Command command(folder_, kCaftan, BatchServer::command("run", {kServer + "rounds=100000"}));
  ASSERT_TRUE(command.wait_for_line("trains convnet"));
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(Seconds(5)));
}

TEST_F(BatchServer, ImagesThatAreMissingOrCutAreFoundByCheck) {
  const std::string fashion = kData + "name=fashion-mnist";
  const std::string path = kData + "path=" + folder_.path().string();
  const Finished missing = run_to_end(folder_, kCaftan, command("check", {fashion, path}));
  EXPECT_EQ(missing.code, 0) << "another machine may have them";
  EXPECT_THAT(missing.err, AllOf(HasSubstr("warning: "), HasSubstr("train-images-idx3-ubyte.gz: there is no such")));
  write_fashion(folder_, 300, 20);
  EXPECT_THAT(run_to_end(folder_, kCaftan, command("check", {fashion, path})).err, Not(HasSubstr("ubyte")));
  std::filesystem::resize_file(folder_.path() / "t10k-images-idx3-ubyte.gz", 50);
  const Finished cut = run({fashion, path});
  EXPECT_EQ(cut.code, 2) << "found before anything starts";
  EXPECT_THAT(cut.err,
              AllOf(StartsWith("command line: error: "), HasSubstr("t10k-images-idx3-ubyte.gz: it is cut off")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs"));
}

TEST_F(BatchServer, LearnsFromFilesInTheFormOfFashionMnist) {
  write_fashion(folder_, 300, 20);
  const Finished finished = run({kData + "name=fashion-mnist", kData + "path=" + folder_.path().string(),
                                 kServer + "rounds=3", kServer + "goal=0.0"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("of 20 test images"));
}

TEST_F(BatchServer, WhatCannotWorkIsSaidBeforeOrWithTheKey) {
  EXPECT_THAT(run({kServer + "quorum=2"}).err, HasSubstr("quorum and straggler_timeout stand together"));
  EXPECT_THAT(run({kData + "name=noise"}).err, HasSubstr("convnet takes grey images of 28x28 pixels"));
  const Finished few = run({kData + "limit=40"});
  EXPECT_EQ(few.code, 2) << "found before anything starts";
  EXPECT_THAT(few.err, AllOf(HasSubstr("fewer than a batch of 16"), HasSubstr("data.partition = \"full\"")));
  const Finished missed = run({kServer + "goal=1.0", kServer + "rounds=2"});
  EXPECT_EQ(missed.code, 1);
  EXPECT_THAT(missed.err, HasSubstr("goal_missed"));
  const Finished diverged = run({kServer + "optimizer.lr=1000"});
  EXPECT_EQ(diverged.code, 1);
  EXPECT_THAT(diverged.err, HasSubstr("the training has diverged; its learning rate was 1000"));
}

}  // namespace
}  // namespace caftan::test::batch_parameter_server_test
