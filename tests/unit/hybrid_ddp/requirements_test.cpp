// What a training lacks is reported before anything starts, with the config's keys and what to do.
#include "hybrid_ddp/requirements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caftan/collectives/collectives.hpp"
#include "folder.hpp"

namespace caftan::hybrid_ddp::requirements_test {
namespace {

using ::testing::HasSubstr;

TEST(HybridRequirements, TrainersThatDifferAreNamed) {
  const TrainerConfig one;
  TrainerConfig other;
  EXPECT_TRUE(find_missing({}, {&one, &other}, 1).empty());
  other.words = 5;
  const auto missing = find_missing({}, {&one, &other}, 1);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_THAT(missing.front().text, HasSubstr("differ in corpus, words, per_class or batch"));
}

TEST(HybridRequirements, AMissingBackendNamesThePackage) {
  MasterConfig config;
  config.backend = BackendName::gloo;
  const auto missing = find_missing(config, {}, 1);
  EXPECT_EQ(missing.empty(), collectives::has_gloo());
  if (!missing.empty()) {
    EXPECT_THAT(missing.front().text, HasSubstr("apt-get install libgloo-dev"));
  }
}

TEST(HybridRequirements, ACheckpointOfAnotherTrainingIsNamed) {
  const test::Folder folder;
  MasterConfig config;
  checkpoints::ModelCheckpoint checkpoint{.facts = facts_of(config, {20, 60, 16}, 2, 1), .step = 5};
  (void)checkpoints::write_checkpoint(folder.path(), checkpoint, 1).value();
  const TrainerConfig trainer;
  config.resume = folder.path();
  EXPECT_TRUE(find_missing(config, {&trainer, &trainer}, 1).empty());
  EXPECT_THAT(find_missing(config, {&trainer, &trainer, &trainer}, 1).at(0).text, HasSubstr("trainers = 2"));
  EXPECT_THAT(find_missing(config, {&trainer, &trainer}, 2).at(0).text, HasSubstr("seed"));
  config.max_steps = 4;
  EXPECT_THAT(find_missing(config, {&trainer, &trainer}, 1).at(0).text, HasSubstr("max_steps"));
}

}  // namespace
}  // namespace caftan::hybrid_ddp::requirements_test
