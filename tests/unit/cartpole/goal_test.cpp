// U8: a goal that the steps of an episode do not allow.
#include "cartpole/goal.hpp"

#include <gtest/gtest.h>

namespace caftan::cartpole {
namespace {

const rl::EnvironmentSpec kEnvironment{.id = "CartPole-v1", .max_steps = 500, .solved_at = 475.0};

AgentConfig with_steps(std::int64_t steps_per_episode, std::optional<double> solved_at = {}) {
  AgentConfig config;
  config.steps_per_episode = steps_per_episode;
  config.solved_at = solved_at;
  return config;
}

TEST(Goal, U8_StepsThatAreSharedMayBeTooFew) {
  EXPECT_FALSE(find_unreachable_goal({}, 10, kEnvironment));
  const auto found = find_unreachable_goal({}, 16, kEnvironment);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->by_environment);
  EXPECT_EQ(found->text,
            "16 observers share 5000 steps an episode, 312 each: no running reward can pass the goal of 475.0; "
            "steps_per_episode has to be 7616 at least");
  EXPECT_FALSE(find_unreachable_goal(with_steps(7616), 16, kEnvironment));
  EXPECT_TRUE(find_unreachable_goal(with_steps(7615), 16, kEnvironment));
}

TEST(Goal, U8_OneObserverMayHaveTooFewToo) {
  const auto found = find_unreachable_goal(with_steps(20, 20.0), 1, kEnvironment);
  ASSERT_TRUE(found);
  EXPECT_EQ(
      found->text,
      "1 observer has 20 steps an episode: no running reward can pass the goal of 20.0; steps_per_episode has to be "
      "21 at least");
}

TEST(Goal, U8_AGoalBeyondTheEnvironmentIsNeverReached) {
  const auto found = find_unreachable_goal(with_steps(5000, 1e9), 1, kEnvironment);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->by_environment);
  EXPECT_EQ(found->text,
            "CartPole-v1 ends an episode after 500 steps: no running reward can pass the goal of 1000000000.0");
}

}  // namespace
}  // namespace caftan::cartpole
