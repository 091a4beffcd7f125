// What a trainer lacks is reported before anything starts, with the config's keys and what to do.
#include "rnn_lm/requirements.hpp"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "rnn_lm/checkpoint.hpp"
#include "small_texts.hpp"

namespace caftan::rnn_lm::requirements_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kSeed = 5;

std::vector<app::MissingRequirement> find(const TrainerConfig& config,
                                          std::int64_t memory = std::numeric_limits<std::int64_t>::max()) {
  return find_missing(config, {.parameter_seed = kSeed, .memory = memory});
}

/// Expects one missing requirement and returns it as "key: text".
std::string one(const std::vector<app::MissingRequirement>& missing) {
  EXPECT_THAT(missing, SizeIs(1));
  return missing.empty() ? std::string() : missing.front().keys.front() + ": " + missing.front().text;
}

class Requirements : public ::testing::Test {
 protected:
  /// Returns a config that resumes at step 60 of a checkpoint of its own model.
  TrainerConfig make_resuming(std::int64_t max_steps) const {
    TrainerConfig config = make_config(folder_.write("text", make_text(500)));
    const corpus::Corpus corpus = corpus::read_corpus(config.corpus).value();
    Checkpoint checkpoint{.model = facts_of(config, corpus, kSeed)};
    checkpoint.state.step = 60;
    checkpoint.state.learning_rate = config.optimizer.lr;
    checkpoint.trainer = checkpoint.embedding = checkpoint.decoder = {at::ones({2})};
    config.resume = folder_.path() / "run";
    write_checkpoint(*config.resume / "checkpoints", checkpoint, 2).value();
    config.max_steps = max_steps;
    return config;
  }
  std::string checkpoint() const { return folder_ / "run/checkpoints/step-000060"; }
  test::Folder folder_;
};

TEST_F(Requirements, NothingIsMissingForATextThatIsLongEnough) {
  EXPECT_THAT(find(make_config(folder_.write("text", make_text(500)))), IsEmpty());
}

TEST_F(Requirements, ATextThatIsMissingOrTooShort) {
  EXPECT_THAT(one(find(make_config(folder_ / "none"))), HasSubstr("corpus.path: " + (folder_ / "none") + ": there is"));
  EXPECT_EQ(one(find(make_config(folder_.write("short", "hi\n")))),
            "corpus.path: " + (folder_ / "short") +
                ": a text of 3 characters is too short for 4 windows of 10 side by side: it needs 41; take a longer "
                "text, or a smaller batch or bptt");
  TrainerConfig none_kept = make_config(folder_.write("nine", "abcdefghi"));
  none_kept.batch = none_kept.bptt = 1;
  EXPECT_THAT(one(find(none_kept)), HasSubstr("a text of 0 characters is too short"));
}

TEST_F(Requirements, ACheckpointThatFitsIsEnoughAtItsLastStepToo) {
  EXPECT_THAT(find(make_resuming(61)), IsEmpty());
  EXPECT_THAT(find(make_resuming(60)), IsEmpty());
}

TEST_F(Requirements, ACheckpointBeyondTheLastStep) {
  EXPECT_EQ(one(find(make_resuming(59))),
            "resume: " + checkpoint() +
                ": the checkpoint stands at step 60, beyond max_steps = 59; raise max_steps, or resume from an earlier "
                "checkpoint");
}

TEST_F(Requirements, ACheckpointOfAnotherModelCorpusOptimizerOrSeed) {
  const std::string way_out = "; take over its value, or leave resume out to start anew";
  const std::string manifest = "resume: " + checkpoint() + "/manifest: a checkpoint of another model: ";
  TrainerConfig config = make_resuming(90);
  config.hid = 13;
  EXPECT_EQ(one(find(config)), manifest + "hid = 12, here it is 13" + way_out);
  config = make_resuming(90);
  config.optimizer.name = OptimizerConfig::Name::sgd;
  EXPECT_EQ(one(find(config)), manifest + "optimizer.name = adam, here it is sgd" + way_out);
  config = make_resuming(90);
  config.corpus.path = folder_.write("other", make_text(501));
  EXPECT_EQ(one(find(config)), manifest + "another corpus" + way_out);
  config = make_resuming(90);
  EXPECT_EQ(one(find_missing(config, {.parameter_seed = kSeed + 1, .memory = 1LL << 40})),
            manifest + "another run.seed" + way_out);
}

TEST_F(Requirements, AFolderWithoutACheckpointOrWithoutAFileOfIt) {
  TrainerConfig config = make_resuming(90);
  std::filesystem::remove(checkpoint() + "/optimizer");
  EXPECT_EQ(one(find(config)), "resume: " + checkpoint() + "/optimizer: it is missing; use an earlier checkpoint");
  config.resume = folder_.path();
  EXPECT_THAT(one(find(config)), HasSubstr("resume: " + folder_.path().string() + ": there is no whole checkpoint"));
  config.resume = folder_.path() / "nowhere";
  EXPECT_THAT(one(find(config)), HasSubstr("resume: there is no folder " + (folder_ / "nowhere")));
}

TEST_F(Requirements, U3_AFileOfTheCheckpointThatIsCutOffOrOfAnotherOne) {
  for (const std::string part : {"trainer", "embedding", "decoder", "optimizer"}) {
    const TrainerConfig config = make_resuming(90);
    const std::filesystem::path file = checkpoint() + "/" + part;
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    EXPECT_THAT(one(find(config)), ::testing::AllOf(HasSubstr("resume: " + file.string() + ": its header announces "),
                                                    HasSubstr("it was cut off or changed; use an earlier checkpoint")));
  }
  const TrainerConfig config = make_resuming(90);
  std::filesystem::copy_file(checkpoint() + "/manifest", checkpoint() + "/trainer",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(one(find(config)), HasSubstr("resume: " + checkpoint() + "/trainer: it is a checkpoint of "));
}

TEST_F(Requirements, U5_TheLearningRateOfTheCheckpointIsNoted) {
  TrainerConfig config = make_resuming(90);
  config.optimizer.lr = 0.125;
  const auto found = find(config);
  EXPECT_EQ(one(found),
            "optimizer.lr: optimizer.lr is not read: the training goes on with the checkpoint's learning rate, 0.002");
  EXPECT_EQ(found.front().kind, app::MissingRequirement::Kind::note);
}

TEST_F(Requirements, AModelThatNoMemoryHolds) {
  TrainerConfig config = make_config(folder_.write("text", make_text(500)));
  config.hid = 65536;
  EXPECT_EQ(
      one(find(config, 8LL << 30)),
      "hid: the LSTM's parameters, their gradients and the optimizer's state take 256.0 GiB, this machine has 8.0 "
      "GiB of memory; lower hid, layers or emb");
  config.optimizer.name = OptimizerConfig::Name::sgd;
  EXPECT_THAT(find(config, 129LL << 30), IsEmpty());
  EXPECT_GT(memory_of_this_machine(), 1 << 20);
}

}  // namespace
}  // namespace caftan::rnn_lm::requirements_test
