// The parameter server as a user runs it: each mode learns, and the replay of its log of steps in one process gives the
// same parameters bit for bit.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "command.hpp"
#include "lines.hpp"
#include "parameter_server_runs.hpp"

namespace caftan::test::parameter_server_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SharedServer : public ::testing::Test {
 protected:
  Finished run(const std::vector<std::string>& overrides) const {
    return run_to_end(folder_, kCaftan, run_shared_file(overrides));
  }
  std::filesystem::path latest() const { return std::filesystem::canonical(folder_.path() / "runs/latest"); }
  Folder folder_;
};

struct Mode {
  std::string name;
  std::uint32_t trainers;
};
class SharedServerModes : public ::testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, SharedServerModes,
                         ::testing::Values(Mode{"locked", 2}, Mode{"versioned", 2}, Mode{"sync", 2},
                                           Mode{"versioned", 4}),
                         [](const auto& info) { return info.param.name + std::to_string(info.param.trainers); });

TEST_P(SharedServerModes, CM17_TheReplayOfTheLogGivesTheParametersBitForBit) {
  at::set_num_threads(1);  // as workers have it
  const Folder folder;
  const Finished finished =
      run_to_end(folder, kCaftan,
                 run_shared_file({kSharing + "consistency.mode=" + GetParam().name, "run.deterministic=false",
                                  kSharing + "goal=0.0", kSharing + "max_steps=12", kSharing + "evaluate_every=0",
                                  "roles.trainer.replicas=" + std::to_string(GetParam().trainers)}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, AllOf(HasSubstr("\nstaleness: "), HasSubstr("of 500 test images, in evaluation mode\n")));
  const nn::StepLog log = nn::read_step_log(folder.path() / "runs/latest/steps.log").value();
  EXPECT_EQ(log.last().value, GetParam().name == "sync" ? 12U : 12U * GetParam().trainers);
  EXPECT_EQ(checkpoints::read_checkpoint(folder.path() / "runs/latest", {{"model", "convnet"}}).value().step, 12);
  expect_replay(folder.path() / "runs/latest", GetParam().trainers, optim::SGD{.lr = 0.2});
}

TEST_F(SharedServer, SyncLearnsTheSameBitsInEveryPlacementAndGoesOn) {
  const std::string momentum = kSharing + "optimizer.momentum=0.5";  // which a checkpoint has to have, too
  const std::string goal = kSharing + "goal=0.0";                    // bits are compared, not how well it learns
  const Finished one = run({"run.placement=one_process", momentum, goal});
  ASSERT_EQ(one.code, 0) << one.err;
  const Finished many = run({momentum, goal});
  ASSERT_EQ(many.code, 0) << many.err;
  const std::string print = line_with(one.out, "fingerprint sha256:");
  EXPECT_THAT(print, StartsWith("fingerprint sha256:"));
  EXPECT_EQ(line_with(many.out, "fingerprint sha256:"), print);
  EXPECT_THAT(folder_.read("runs/latest/curve.csv"),
              AllOf(HasSubstr("\n30,server.accuracy,"), HasSubstr("\n17,trainer-1.train_loss,")));
  ASSERT_EQ(run({momentum, goal, kSharing + "max_steps=20"}).code, 0);
  const std::filesystem::path stopped = latest();
  const Finished rest = run({momentum, goal, kSharing + "resume=" + stopped.string()});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("resumed: step 20 of " + stopped.string() + "\n"));
  EXPECT_EQ(line_with(rest.out, "fingerprint sha256:"), print);
}

TEST_F(SharedServer, GoesOnWithoutATrainerThatWasKilled) {
  for (const std::string mode : {"versioned", "locked", "sync"}) {
    Command command(folder_, kCaftan,
                    run_shared_file({kSharing + "consistency.mode=" + mode, "run.deterministic=false",
                                     "roles.trainer.on_loss=go_on", kSharing + "epochs=2", kSharing + "max_steps=80",
                                     kSharing + "goal=0.0"}));
    ASSERT_TRUE(command.wait_for_line("trains convnet"));
    ASSERT_NE(command.worker("trainer-1"), 0);
    ASSERT_EQ(::kill(command.worker("trainer-1"), SIGKILL), 0);
    EXPECT_EQ(command.wait(), 0) << mode << '\n' << command.err();
    EXPECT_THAT(command.out(), HasSubstr("of 500 test images, in evaluation mode")) << mode;
    EXPECT_THAT(command.err(), HasSubstr("lost: trainer-1 was killed by signal 9")) << mode;
    EXPECT_THAT(folder_.read("runs/latest/summary.json"),
                HasSubstr("\"lost\": [\n    {\n      \"name\": \"trainer-1\""))
        << mode;
    EXPECT_THAT(folder_.read("runs/latest/log/server.log"), HasSubstr("trainer 1 is lost")) << mode;
    EXPECT_THAT(folder_.read("runs/latest/curve.csv"), HasSubstr("\n80,trainer-0.train_loss,"))
        << "it made all its steps";
  }
}

TEST_F(SharedServer, EndsOnCtrlCWhileItTrains) {
  Command command(folder_, kCaftan, run_shared_file({kSharing + "max_steps=100000", kSharing + "epochs=100000"}));
  ASSERT_TRUE(command.wait_for_line("trains convnet"));
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(Seconds(5)));
}

TEST_F(SharedServer, WhatCannotWorkIsSaidWithTheKey) {
  const Finished random = run({kSharing + "consistency.mode=versioned"});
  EXPECT_EQ(random.code, 1);
  EXPECT_THAT(random.err, HasSubstr("run.deterministic = true needs one trainer, or consistency.mode = \"sync\""));
  const Finished quorum = run({kSharing + "consistency.quorum=2"});
  EXPECT_EQ(quorum.code, 2) << "found before anything starts";
  EXPECT_THAT(quorum.err, HasSubstr("straggler_timeout"));
  const Finished few = run({"roles.trainer.config.batch=1001"});
  EXPECT_EQ(few.code, 2) << "found before anything starts";
  EXPECT_THAT(few.err, HasSubstr("a trainer has 1000 images, fewer than a batch of 1001"));
  const Finished missed = run({kSharing + "goal=1.0", kSharing + "max_steps=2"});
  EXPECT_EQ(missed.code, 1);
  EXPECT_THAT(missed.err, HasSubstr("goal_missed"));
}

}  // namespace
}  // namespace caftan::test::parameter_server_test
