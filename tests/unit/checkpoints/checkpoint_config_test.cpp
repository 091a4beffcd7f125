// When a training writes checkpoints, and when all trainers have to wait.
#include "checkpoints/checkpoint_config.hpp"

#include <gtest/gtest.h>

namespace caftan::checkpoints::checkpoint_config_test {
namespace {

TEST(CheckpointConfig, IsDueAtEachMultipleAndAtTheEnd) {
  const CheckpointConfig config{.every = 20};
  EXPECT_FALSE(config.is_due(19, 50));
  EXPECT_TRUE(config.is_due(20, 50));
  EXPECT_FALSE(config.is_due(49, 50));
  EXPECT_TRUE(config.is_due(50, 50));
}

TEST(CheckpointConfig, IsNeverDueWithoutAnInterval) { EXPECT_FALSE(CheckpointConfig{}.is_due(50, 50)); }

TEST(NextStop, IsTheFirstMultipleOrTheLastStep) {
  EXPECT_EQ(next_stop(0, 50, {20, 15}), 15);
  EXPECT_EQ(next_stop(15, 50, {20, 15}), 20) << "behind the step, not at it";
  EXPECT_EQ(next_stop(45, 50, {20, 15}), 50);
  EXPECT_EQ(next_stop(20, 50, {0, 20}), 40) << "0 is no interval";
  EXPECT_EQ(next_stop(0, 50, {0, 0}), 50);
}

}  // namespace
}  // namespace caftan::checkpoints::checkpoint_config_test
