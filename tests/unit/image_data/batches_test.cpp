// Which images a trainer learns from in which step is a function of the seed and the step.
#include "image_data/batches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace caftan::image_data::batches_test {
namespace {

using ::testing::HasSubstr;

BatchesOptions options(std::uint32_t trainer, std::uint32_t trainers, Partition partition = Partition::split) {
  return {.images = 103, .batch = 10, .trainer = trainer, .trainers = trainers, .partition = partition, .seed = 7};
}

std::vector<std::int64_t> epoch_of(Batches& batches, std::int64_t epoch) {
  std::vector<std::int64_t> images;
  for (std::int64_t i = 0; i < batches.per_epoch(); ++i) {
    for (const std::int64_t image : batches.at(epoch * batches.per_epoch() + i)) images.push_back(image);
  }
  return images;
}

TEST(Batches, PartsOfTrainersHaveNothingInCommonAndAreAllTogether) {
  std::set<std::int64_t> all;
  std::int64_t total = 0;
  for (std::uint32_t trainer = 0; trainer < 4; ++trainer) {
    Batches batches = Batches::make({.images = 103, .batch = 1, .trainer = trainer, .trainers = 4, .seed = 7}).value();
    EXPECT_GE(batches.size(), 25);
    EXPECT_LE(batches.size(), 26);
    for (const std::int64_t image : epoch_of(batches, 0)) all.insert(image);
    total += batches.size();
  }
  EXPECT_EQ(total, 103);
  EXPECT_EQ(all.size(), 103U);
  EXPECT_EQ(*all.begin(), 0);
  EXPECT_EQ(*all.rbegin(), 102);
}

TEST(Batches, WithPartitionFullEachTrainerHasAllInAnOrderOfItsOwn) {
  Batches one = Batches::make(options(0, 4, Partition::full)).value();
  Batches other = Batches::make(options(1, 4, Partition::full)).value();
  EXPECT_EQ(one.size(), 103);
  EXPECT_EQ(one.per_epoch(), 10);
  const auto first = epoch_of(one, 0);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 100U) << "no image twice in an epoch";
  EXPECT_NE(first, epoch_of(other, 0));
}

TEST(Batches, OptionsOutOfTheirRangeAreRefused) {
  const auto refused = [](const BatchesOptions& options) { return Batches::make(options).error().code(); };
  EXPECT_EQ(refused({.images = 10, .batch = 1, .trainer = 0, .trainers = 0}), Errc::bad_arguments);
  EXPECT_EQ(refused({.images = 10, .batch = 1, .trainer = 2, .trainers = 2}), Errc::bad_arguments);
  EXPECT_EQ(refused({.images = 10, .batch = 0}), Errc::bad_arguments);
  EXPECT_EQ(refused({.images = -1, .batch = 1, .partition = Partition::full}), Errc::bad_arguments);
}

TEST(Batches, EachEpochHasAnOrderOfItsOwn) {
  Batches batches = Batches::make(options(1, 2)).value();
  auto first = epoch_of(batches, 0);
  auto second = epoch_of(batches, 1);
  EXPECT_NE(first, second);
  Batches whole = Batches::make({.images = 100, .batch = 10, .seed = 7}).value();
  first = epoch_of(whole, 0);
  second = epoch_of(whole, 1);
  EXPECT_NE(first, second);
  std::ranges::sort(first);
  std::ranges::sort(second);
  EXPECT_EQ(first, second);
}

TEST(Batches, AStepIsTheSameHoweverItIsReached) {
  Batches on = Batches::make(options(1, 3)).value();
  std::vector<std::vector<std::int64_t>> steps;
  for (std::int64_t step = 0; step < 12; ++step) steps.push_back(on.at(step));
  for (const std::int64_t step : {11, 0, 7, 3}) {
    Batches anew = Batches::make(options(1, 3)).value();
    EXPECT_EQ(anew.at(step), steps[static_cast<std::size_t>(step)]) << step;
    EXPECT_EQ(on.at(step), steps[static_cast<std::size_t>(step)]) << step;
  }
}

TEST(Batches, AnotherSeedDealsOtherwise) {
  BatchesOptions other = options(0, 2);
  other.seed = 8;
  EXPECT_NE(Batches::make(options(0, 2)).value().at(0), Batches::make(other).value().at(0));
}

TEST(Batches, FewerImagesThanABatchAreRefusedWithTheWaysOut) {
  EXPECT_TRUE(Batches::make(options(0, 10)));
  const auto small = Batches::make(options(10, 11));
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code(), Errc::invalid_config);
  EXPECT_THAT(small.error().text(), HasSubstr("9 images, fewer than a batch of 10; lower batch, raise data.limit, or"));
  BatchesOptions alone = options(0, 1);
  alone.batch = 104;
  EXPECT_THAT(Batches::make(alone).error().text(), ::testing::EndsWith("lower batch, raise data.limit"));
}

}  // namespace
}  // namespace caftan::image_data::batches_test
