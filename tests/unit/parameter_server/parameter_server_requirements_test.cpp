// What a server and its trainers cannot do is reported before anything starts, with the keys and what to do.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "folder.hpp"
#include "image_training/requirements.hpp"
#include "parameter_server/requirements.hpp"

namespace caftan::parameter_server::parameter_server_requirements_test {
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

/// Expects one missing requirement of a server with two trainers, and returns it as "key: text".
std::string one(const ServerConfig& config, const TrainerConfig& trainer, Kind kind = Kind::file) {
  const auto missing = find_missing(config, {&trainer, &trainer}, kSeed);
  EXPECT_THAT(missing, SizeIs(1));
  if (missing.empty()) return {};
  EXPECT_EQ(missing.front().kind, kind);
  return missing.front().keys.front() + ": " + missing.front().text;
}

TEST(ParameterServerRequirements, NothingIsMissing) {
  const TrainerConfig trainer = shapes();
  EXPECT_THAT(find_missing({}, {&trainer}, kSeed), IsEmpty());
  EXPECT_THAT(find_missing(trainer), IsEmpty());
}

TEST(ParameterServerRequirements, OptionsOfAnotherMode) {
  ServerConfig config;
  config.consistency.quorum = 2;
  EXPECT_THAT(one(config, shapes()), HasSubstr("quorum"));
  config.consistency.mode = nn::ConsistencyMode::sync;
  config.consistency.straggler_timeout = 1s;
  config.consistency.quorum = 3;
  EXPECT_THAT(one(config, shapes()), HasSubstr("quorum"));
  config.consistency.quorum = 2;
  const TrainerConfig trainer = shapes();
  EXPECT_THAT(find_missing(config, {&trainer, &trainer}, kSeed), IsEmpty());
}

TEST(ParameterServerRequirements, ImagesThatTheModelDoesNotTake) {
  const TrainerConfig noise{.data = {.name = DataConfig::Name::noise}};
  EXPECT_THAT(one({}, noise), HasSubstr("model: convnet takes grey images"));
  const TrainerConfig other = shapes();
  const auto missing = find_missing({.model = models::ModelName::resnet18}, {&noise, &other}, kSeed);
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_THAT(missing[0].text, HasSubstr("different images (noise, shapes)"));
}

TEST(ParameterServerRequirements, FewerImagesThanABatch) {
  TrainerConfig trainer = shapes();
  trainer.batch = 1000;
  const ServerConfig config;
  EXPECT_THAT(find_missing(config, {&trainer, &trainer}, kSeed), IsEmpty());
  trainer.batch = 1001;
  EXPECT_THAT(one(config, trainer),
              HasSubstr("trainer 0: a trainer has 1000 images, fewer than a batch of 1001; lower"));
  trainer.data.partition = image_data::Partition::full;
  EXPECT_THAT(find_missing(config, {&trainer, &trainer}, kSeed), IsEmpty());
  trainer.data.limit = 1000;
  EXPECT_THAT(one(config, trainer), HasSubstr("raise data.limit"));
  TrainerConfig any{.data = {.path = "/somewhere"}};  // how many there are is not known before they are read
  any.batch = 65000;
  EXPECT_THAT(find_missing(config, {&any, &any}, kSeed), IsEmpty());
}

TEST(ParameterServerRequirements, AShapeOfImagesThatTheModelDoesNotTake) {
  using image_training::check_shape;
  EXPECT_TRUE(check_shape(models::ModelName::convnet, {.channels = 1}, "a folder"));
  EXPECT_TRUE(check_shape(models::ModelName::resnet18, {.channels = 3}, "a folder"));
  const auto colour = check_shape(models::ModelName::convnet, {.channels = 3}, "a folder");
  EXPECT_THAT(colour.error().text(), HasSubstr("convnet takes grey images of 28x28 pixels, not those of a folder"));
}

TEST(ParameterServerRequirements, ACheckpointThatDoesNotFit) {
  const test::Folder folder;
  const TrainerConfig trainer = shapes();
  ServerConfig config{.max_steps = 60};
  const TrainerFacts facts = facts_of(trainer);
  checkpoints::write_checkpoint(
      folder.path(), {.facts = facts_of(config, {facts, facts}, kSeed), .step = 60, .parameters = {at::ones({2})}}, 2)
      .value();
  config.resume = folder.path();
  EXPECT_THAT(find_missing(config, {&trainer, &trainer}, kSeed), IsEmpty());
  config.max_steps = 59;
  EXPECT_THAT(one(config, trainer, Kind::here), HasSubstr("step-000060: it stands at step 60, beyond max_steps = 59"));
  config.max_steps.reset();
  config.optimizer.name = image_training::OptimizerConfig::Name::adam;
  EXPECT_THAT(one(config, trainer, Kind::here), HasSubstr("optimizer.name = sgd, here it is adam"));
  config.optimizer.name = image_training::OptimizerConfig::Name::sgd;
  config.optimizer.lr = 0.5;
  config.optimizer.momentum = 0.5;
  EXPECT_THAT(find_missing(config, {&trainer, &trainer}, kSeed), IsEmpty()) << "it goes on with those of this file";
  config.consistency.mode = nn::ConsistencyMode::locked;
  EXPECT_THAT(one(config, trainer, Kind::here), HasSubstr("consistency.mode = versioned, here it is locked"));
}

}  // namespace
}  // namespace caftan::parameter_server::parameter_server_requirements_test
