#include "actor_critic/schedule.hpp"

#include <gtest/gtest.h>

namespace caftan::actor_critic::schedule_test {
namespace {

LearnerConfig made_config() {
  LearnerConfig config;
  config.evaluate_every = 100;
  config.checkpoint.every = 250;
  config.max_frames = 1000;
  return config;
}

TEST(Schedule, SaysWhatIsDueWhenAMultipleWasPassed) {
  Schedule schedule(made_config(), 0);
  EXPECT_FALSE(schedule.after(99).evaluation);
  EXPECT_TRUE(schedule.after(100).evaluation);
  EXPECT_FALSE(schedule.after(199).evaluation);
  const auto both = schedule.after(512);  // over several at once
  EXPECT_TRUE(both.evaluation);
  EXPECT_TRUE(both.checkpoint);
  EXPECT_FALSE(both.end);
  EXPECT_FALSE(schedule.after(540).checkpoint);
  const auto last = schedule.after(1001);
  EXPECT_TRUE(last.evaluation && last.checkpoint && last.end);
}

TEST(Schedule, GoesOnWhereATrainingStands) {
  Schedule schedule(made_config(), 260);
  const auto due = schedule.after(290);
  EXPECT_FALSE(due.evaluation);
  EXPECT_FALSE(due.checkpoint);
  EXPECT_TRUE(schedule.after(300).evaluation);
}

TEST(Schedule, MakesNoCheckpointsWithoutAnInterval) {
  LearnerConfig config = made_config();
  config.checkpoint.every = 0;
  EXPECT_FALSE(Schedule(config, 0).after(1000).checkpoint);
}

}  // namespace
}  // namespace caftan::actor_critic::schedule_test
