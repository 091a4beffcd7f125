// What a server and its trainers cannot do is reported before anything starts, with the keys and what to do.
#include "batch_parameter_server/requirements.hpp"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_files.hpp"
#include "image_training/requirements.hpp"

namespace caftan::batch_parameter_server::requirements_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = app::MissingRequirement::Kind;
using image_data::DataConfig;
using image_training::TrainerConfig;
using image_training::TrainerFacts;

constexpr std::uint64_t kSeed = 5;

TrainerConfig shapes() { return {.data = {.name = DataConfig::Name::shapes}}; }

/// Expects one missing requirement of a server with three trainers, and returns it as "key: text".
std::string one(const ServerConfig& config, const TrainerConfig& trainer, Kind kind = Kind::file) {
  const auto missing = find_missing(config, {&trainer, &trainer, &trainer}, kSeed);
  EXPECT_THAT(missing, SizeIs(1));
  if (missing.empty()) return {};
  EXPECT_EQ(missing.front().kind, kind);
  return missing.front().keys.front() + ": " + missing.front().text;
}

TEST(Requirements, NothingIsMissing) {
  const TrainerConfig trainer = shapes();
  EXPECT_THAT(find_missing({}, {&trainer}, kSeed), IsEmpty());
  EXPECT_THAT(find_missing({.quorum = 1, .straggler_timeout = 1s}, {&trainer}, kSeed), IsEmpty());
  EXPECT_THAT(find_missing(trainer), IsEmpty());
}

TEST(Requirements, AQuorumThatCannotBe) {
  EXPECT_THAT(one({.quorum = 4, .straggler_timeout = 1s}, shapes()), HasSubstr("quorum is 4, there are 3 trainers"));
  EXPECT_THAT(one({.quorum = 2}, shapes()), HasSubstr("quorum and straggler_timeout stand together"));
  EXPECT_THAT(one({.straggler_timeout = 1s}, shapes()), HasSubstr("stand together"));
}

TEST(Requirements, ImagesThatTheModelDoesNotTake) {
  const TrainerConfig noise{.data = {.name = DataConfig::Name::noise}};
  EXPECT_THAT(one({}, noise), HasSubstr("model: convnet takes grey images of 28x28 pixels"));
  EXPECT_THAT(find_missing({.model = models::ModelName::resnet50}, {&noise}, kSeed), IsEmpty());
  const TrainerConfig other = shapes();
  const auto missing = find_missing({.model = models::ModelName::resnet18}, {&noise, &other}, kSeed);
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_THAT(missing[0].text, HasSubstr("different images (noise, shapes)"));
}

TEST(Requirements, FewerImagesThanABatch) {
  TrainerConfig trainer = shapes();
  trainer.batch = 666;  // of 2,000 for three trainers
  EXPECT_THAT(find_missing(ServerConfig{}, {&trainer, &trainer, &trainer}, kSeed), IsEmpty());
  trainer.batch = 667;
  EXPECT_THAT(one({}, trainer), HasSubstr("trainer 2: a trainer has 666 images, fewer than a batch of 667; lower"));
}

TEST(Requirements, ACutFileIsMissingHere) {
  const test::Folder folder;
  const TrainerConfig config{.data = {.path = test::write_fashion(folder, 40, 10)}};
  EXPECT_THAT(find_missing(config), IsEmpty());
  std::filesystem::resize_file(folder.path() / "t10k-images-idx3-ubyte.gz", 30);
  const auto missing = find_missing(config);
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_EQ(missing[0].kind, Kind::here);
  EXPECT_THAT(missing[0].text, HasSubstr("t10k-images-idx3-ubyte.gz: it is cut off"));
}

TEST(Requirements, ACheckpointThatDoesNotFit) {
  const test::Folder folder;
  const TrainerConfig trainer = shapes();
  ServerConfig config{.rounds = 60};
  const TrainerFacts facts = facts_of(trainer);
  const checkpoints::ModelCheckpoint checkpoint{
      .facts = facts_of(config, {facts, facts, facts}, kSeed), .step = 60, .parameters = {at::ones({2})}};
  checkpoints::write_checkpoint(folder.path(), checkpoint, 2).value();
  config.resume = folder.path();
  EXPECT_THAT(find_missing(config, {&trainer, &trainer, &trainer}, kSeed), IsEmpty());
  config.rounds = 59;
  EXPECT_THAT(one(config, trainer, Kind::here), HasSubstr("resume: " + (folder / "step-000060: it stands at step 60")));
  config.rounds = 60;
  config.optimizer.name = image_training::OptimizerConfig::Name::adam;
  EXPECT_THAT(one(config, trainer, Kind::here), HasSubstr("optimizer.name = sgd, here it is adam"));
  config.optimizer.name = image_training::OptimizerConfig::Name::sgd;
  TrainerConfig full = trainer;
  full.data.partition = image_data::Partition::full;
  EXPECT_THAT(one(config, full, Kind::here), HasSubstr("data.partition of trainer 0 = split, here it is full"));
  const auto fewer = find_missing(config, {&trainer, &trainer}, kSeed);
  ASSERT_THAT(fewer, SizeIs(1));
  EXPECT_THAT(fewer[0].text, HasSubstr("trainers = 3, here it is 2"));
  const auto other = find_missing(config, {&trainer, &trainer, &trainer}, kSeed + 1);
  ASSERT_THAT(other, SizeIs(1));
  EXPECT_THAT(other[0].text, HasSubstr("the seed of the parameters"));
}

TEST(Requirements, ARunOfTheBatchedMethodTakesARoundOrWithAQuorumWhatHasCome) {
  const BatchLimits plain = limits_of({}, 5);
  EXPECT_EQ(plain.max_size, 5U);
  EXPECT_EQ(plain.max_wait, std::chrono::hours(1)) << "the longest that there is: a round waits for all";
  EXPECT_EQ(quorum_of({}, 5), 5U);
  const ServerConfig config{.quorum = 4, .straggler_timeout = 2s};
  EXPECT_EQ(limits_of(config, 5).max_size, 5U);
  EXPECT_EQ(limits_of(config, 5).max_wait, 1ms) << "Rounds says how long a quorum waits for the others";
  EXPECT_EQ(quorum_of(config, 5), 4U);
  EXPECT_EQ(limits_of(config, 0).max_size, 1U) << "check refuses the file; until then the limits must be some";
}

}  // namespace
}  // namespace caftan::batch_parameter_server::requirements_test
