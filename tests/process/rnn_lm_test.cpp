// The language model as a user runs it: any placement gives the same bits, and a killed run continues from its last
// checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "command.hpp"
#include "rnn_lm_runs.hpp"

namespace caftan::test::rnn_lm_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class LanguageModel : public ::testing::Test {
 protected:
  Finished run(const std::vector<std::string>& overrides) const {
    return run_to_end(folder_, kCaftan, run_file(overrides));
  }
  Folder folder_;
};

TEST_F(LanguageModel, LearnsTheSameBitsInEveryPlacement) {
  const std::string every_step = "roles.trainer.config.checkpoint.every=1";
  const std::string keep_all = "roles.trainer.config.checkpoint.keep=1000";
  const Finished one = run({"run.placement=one_process", every_step, keep_all});
  ASSERT_EQ(one.code, 0) << one.err;
  const std::string curve = folder_.read("runs/latest/curve.csv");
  const fs::path odd = fs::canonical(folder_.path() / "runs/latest");
  const Finished two = run({"run.placement=processes", every_step, keep_all});
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(line_with(one.out, "fingerprint sha256:"), StartsWith("fingerprint sha256:"));
  if (line_with(two.out, "fingerprint sha256:") != line_with(one.out, "fingerprint sha256:")) {
    const fs::path normal = fs::canonical(folder_.path() / "runs/latest");
    ADD_FAILURE() << "one_process: " << line_with(one.out, "fingerprint sha256:")
                  << "\nprocesses:   " << line_with(two.out, "fingerprint sha256:") << "\nCPU: " << cpu_model()
                  << "\nfirst difference: " << first_difference(odd / "checkpoints", normal / "checkpoints")
                  << "\nboth runs are kept in " << keep({odd, normal}).string();
  }
  EXPECT_EQ(folder_.read("runs/latest/curve.csv"), curve);
  // The heading, 60 steps, and four values of the validations after 20, 40 and 60 steps.
  EXPECT_EQ(std::ranges::count(curve, '\n'), 1 + 60 + 3 * 4);
  EXPECT_THAT(curve,
              AllOf(StartsWith("step,name,value\r\n1,trainer.train_loss,"), HasSubstr("\n60,trainer.valid_loss,")));
  EXPECT_THAT(two.err, AllOf(HasSubstr("\ncurve: runs/"), HasSubstr("/curve.svg\n")));
  EXPECT_THAT(folder_.read("runs/latest/curve.svg"), AllOf(StartsWith("<svg "), HasSubstr(">valid_loss</text>")));
  const Finished drawn = run_to_end(folder_, kCaftan, {"plot", odd.string(), "runs/latest", "--metric", "valid_loss"});
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  EXPECT_EQ(drawn.out, "plot.svg\n");
  // The legend names the first setting in which the two runs differ.
  const std::string label = std::getenv("CAFTAN_TEST_CHANNEL") ? "cluster.channel=auto" : "run.placement=one_process";
  EXPECT_THAT(folder_.read("plot.svg"), AllOf(HasSubstr(">" + label + " (" + odd.filename().string() + ")</text>"),
                                              Not(HasSubstr(">train_loss</text>"))));
  EXPECT_THAT(two.out, AllOf(HasSubstr("trained: 60 steps, valid loss "), HasSubstr("\nsample:\n  ")));
  EXPECT_THAT(folder_.read("runs/latest/metrics.csv"), AllOf(HasSubstr("perplexity"), HasSubstr("bytes_per_step")));
  EXPECT_TRUE(is_whole_csv(folder_.read("runs/latest/metrics.csv")));
}

TEST_F(LanguageModel, LearnsTheSameBitsOverThreeWorkers) {
  // Dropout and clipping are off: dropout masks depend on the role, and the squares of the norm are added worker by
  // worker.
  const std::vector<std::string> plain{"roles.trainer.config.dropout=0.0", "roles.trainer.config.optimizer.clip=0.0"};
  const Finished two = run(plain);
  ASSERT_EQ(two.code, 0) << two.err;
  const std::string curve = folder_.read("runs/latest/curve.csv");
  std::string text = folder_.read(kFile);
  text.replace(text.find("decoder   = \"ps\""), 16, "decoder = \"head\"");
  folder_.write("three.toml", text + "[roles.head]\ntype = \"rnn_lm.ps\"\n");
  const Finished three = run_to_end(folder_, kCaftan, {"run", "three.toml", plain[0], plain[1]});
  ASSERT_EQ(three.code, 0) << three.err;
  EXPECT_EQ(folder_.read("runs/latest/curve.csv"), curve);
  EXPECT_EQ(line_with(three.out, "fingerprint sha256:"), line_with(two.out, "fingerprint sha256:"));
}

TEST_F(LanguageModel, AMissedGoalFails) {
  const Finished run_result = run({"roles.trainer.config.goal=0.5", "roles.trainer.config.max_steps=3"});
  EXPECT_EQ(run_result.code, 1);
  EXPECT_THAT(run_result.err, AllOf(HasSubstr("trainer: goal_missed: valid loss "), HasSubstr("the goal is 0.500")));
}

TEST_F(LanguageModel, BI8_CtrlCEndsItCleanly) {
  Command command(folder_, kCaftan, run_file({"roles.trainer.config.max_steps=100000"}));
  ASSERT_TRUE(command.wait_for_line("checkpoint: step 20 ")) << command.err();
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
}

TEST_F(LanguageModel, ATextThatIsMissingEmptyOrNotUtf8IsNamedWithTheWayOut) {
  const std::string path = "roles.trainer.config.corpus.path=" + folder_.path().string() + "/text";
  const Finished missing = run({path});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("text: there is no such file"), HasSubstr("corpus.path names")));
  folder_.write("text", "");
  EXPECT_THAT(run({path}).err, HasSubstr("text: it is empty"));
  folder_.write("text", "caf\xe9");
  const Finished latin = run({path});
  EXPECT_EQ(latin.code, 2);
  EXPECT_THAT(latin.err,
              AllOf(HasSubstr("error: "), HasSubstr("role 'trainer': "), HasSubstr("offset 3 is not UTF-8")));
  const Finished checked = run_to_end(folder_, kCaftan, {"check", kConfigs + "/rnn_lm.test.toml", path});
  EXPECT_EQ(checked.code, 0);
  EXPECT_THAT(checked.err, AllOf(HasSubstr("warning: "), HasSubstr("offset 3 is not UTF-8")));
  folder_.write("text", "too short");
  const Finished shorter = run({path, "roles.trainer.config.batch=4"});
  EXPECT_EQ(shorter.code, 2);
  EXPECT_THAT(shorter.err, AllOf(StartsWith("command line: error: " + path + ": role 'trainer': "),
                                 HasSubstr("text: a text of 9 characters is too short for 4 windows")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "runs")) << "found before anything starts";
}

TEST_F(LanguageModel, ATrainingThatDivergesNamesTheLearningRate) {
  const std::string rate = "roles.trainer.config.optimizer.lr=";
  const Finished diverged = run({rate + "1000"});
  EXPECT_EQ(diverged.code, 1);
  EXPECT_THAT(diverged.err, AllOf(HasSubstr("trainer: invalid_config: step "), HasSubstr(" is "),
                                  HasSubstr("its learning rate was 1000: start anew with a lower optimizer.lr")));
  EXPECT_THAT(diverged.out, Not(HasSubstr("trained: ")));
  const Finished refused = run({rate + "1e300"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr(rate + "1e300: lr must be >0..1000, is 1e+300"));
}

TEST_F(LanguageModel, TheLatestRunGoesOnAndHasNothingToDoAtItsLastStep) {
  const std::string steps = "roles.trainer.config.max_steps=";
  folder_.write("lm.toml", folder_.read(kFile));  // paths are relative to the file
  const auto resume = [&](int max_steps) {
    return run_to_end(folder_, kCaftan,
                      {"run", "lm.toml", "roles.trainer.config.resume=runs/latest", steps + std::to_string(max_steps)});
  };
  ASSERT_EQ(run({steps + "20", "roles.trainer.config.goal=10.0"}).code, 0);
  const auto first = std::filesystem::canonical(folder_.path() / "runs/latest");
  const Finished on = resume(40);
  ASSERT_EQ(on.code, 0) << on.err;
  EXPECT_THAT(on.out, AllOf(HasSubstr("resumed: step 20 of " + first.string() + "\n"), HasSubstr("trained: 40 steps")));
  const auto second = std::filesystem::canonical(folder_.path() / "runs/latest");
  EXPECT_NE(second, first);
  EXPECT_THAT(folder_.read("runs/latest/resolved.toml"), HasSubstr("resume = \"" + first.string() + "\""));
  const Finished back = resume(30);
  EXPECT_EQ(back.code, 2);
  EXPECT_THAT(back.err, AllOf(HasSubstr("command line: error: "), HasSubstr("at step 40, beyond max_steps = 30")));
  EXPECT_EQ(std::filesystem::canonical(folder_.path() / "runs/latest"), second) << "a refused run is no run";
  const Finished done = resume(40);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("nothing to train: the checkpoint stands at step 40 and max_steps is 40"),
                              HasSubstr(line_with(on.out, "fingerprint sha256:"))));
}

TEST_F(LanguageModel, ACheckpointThatDoesNotFitIsNamedWithTheWayOut) {
  ASSERT_EQ(run({"roles.trainer.config.max_steps=20", "roles.trainer.config.goal=10.0"}).code, 0);
  const auto folder = std::filesystem::canonical(folder_.path() / "runs" / "latest" / "checkpoints" / "step-000020");
  const std::string resume = "roles.trainer.config.resume=" + folder.string();
  for (const std::string change : {"roles.trainer.config.hid=17", "run.seed=2"}) {
    const Finished other = run({resume, change});
    EXPECT_EQ(other.code, 2) << "found before anything starts";
    EXPECT_THAT(other.err, AllOf(StartsWith("command line: error: " + resume), HasSubstr("manifest: a checkpoint of")));
    EXPECT_THAT(other.err, AnyOf(HasSubstr("hid = 16, here it is 17"), HasSubstr("another run.seed")));
  }
  std::filesystem::resize_file(folder / "optimizer", 100);
  const Finished cut = run({resume});
  EXPECT_EQ(cut.code, 2) << "found before anything starts";
  EXPECT_THAT(cut.err, AllOf(HasSubstr("optimizer: "), HasSubstr("cut off"), HasSubstr("earlier checkpoint")));
  EXPECT_THAT(cut.out, Not(HasSubstr("resumed")));
  const Finished none = run({"roles.trainer.config.resume=" + folder_.path().string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("there is no whole checkpoint"), HasSubstr("start anew")));
  const Finished nowhere = run({"roles.trainer.config.resume=" + folder_.path().string() + "/nowhere"});
  EXPECT_EQ(nowhere.code, 2) << "found before anything starts";
  EXPECT_THAT(nowhere.err, AllOf(HasSubstr("/nowhere"), HasSubstr("relative to the file")));
}

}  // namespace
}  // namespace caftan::test::rnn_lm_test
