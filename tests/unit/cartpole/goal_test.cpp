// U8: a goal that the steps of an episode, or the environments of the observers, do not allow.
#include "cartpole/goal.hpp"

#include <gtest/gtest.h>

namespace caftan::cartpole::goal_test {
namespace {

using Reason = UnreachableGoal::Reason;

const rl::EnvironmentSpec kEnvironment{.id = "CartPole-v1", .max_steps = 500, .solved_at = 475.0};
const rl::EnvironmentSpec kShorter{.id = "CartPole-v0", .max_steps = 200, .solved_at = 195.0};

/// Returns why the agent's goal cannot be reached with `observers` observers of CartPole-v1, if so.
std::optional<UnreachableGoal> find(const AgentConfig& agent, std::size_t observers) {
  return find_unreachable_goal(agent, std::vector<rl::EnvironmentSpec>(observers, kEnvironment));
}

AgentConfig with_steps(std::int64_t steps_per_episode, std::optional<double> solved_at = {}) {
  AgentConfig config;
  config.steps_per_episode = steps_per_episode;
  config.solved_at = solved_at;
  return config;
}

TEST(Goal, U8_StepsThatAreSharedMayBeTooFew) {
  EXPECT_FALSE(find({}, 10));
  const auto found = find({}, 16);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reason, Reason::steps);
  EXPECT_EQ(found->text,
            "16 observers share 5000 steps an episode, 312 each: no running reward can pass the goal of 475.0; "
            "steps_per_episode has to be 7616 at least");
  EXPECT_FALSE(find(with_steps(7616), 16));
  EXPECT_TRUE(find(with_steps(7615), 16));
}

TEST(Goal, U8_OneObserverMayHaveTooFewToo) {
  const auto found = find(with_steps(20, 20.0), 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(
      found->text,
      "1 observer has 20 steps an episode: no running reward can pass the goal of 20.0; steps_per_episode has to be "
      "21 at least");
}

TEST(Goal, U8_AGoalBeyondTheEnvironmentIsNeverReached) {
  const auto found = find(with_steps(5000, 1e9), 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reason, Reason::environment);
  EXPECT_EQ(found->text,
            "CartPole-v1 ends an episode after 500 steps: no running reward can pass the goal of 1000000000.0");
}

TEST(Goal, F3_ObserversOfEnvironmentsWithDifferentThresholdsNeedAGoalOfTheirOwn) {
  for (const auto& environments :
       {std::vector{kEnvironment, kShorter}, std::vector{kShorter, kShorter, kEnvironment}}) {
    const auto found = find_unreachable_goal({}, environments);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->reason, Reason::mixed);
  }
  EXPECT_EQ(find_unreachable_goal({}, {kShorter, kEnvironment})->text,
            "its observers have environments with different thresholds, CartPole-v0 (195.0) and CartPole-v1 (475.0): "
            "set solved_at, the goal of the smallest reward of all observers");
  EXPECT_FALSE(find_unreachable_goal(with_steps(5000, 150.0), {kEnvironment, kShorter}));
}

TEST(Goal, F3_TheShortestEnvironmentDecidesWhateverItsPlaceAmongTheObservers) {
  const AgentConfig agent = with_steps(5000, 300.0);
  EXPECT_FALSE(find_unreachable_goal(agent, {kEnvironment, kEnvironment}));
  for (const auto& environments : {std::vector{kEnvironment, kShorter}, std::vector{kShorter, kEnvironment}}) {
    const auto found = find_unreachable_goal(agent, environments);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->reason, Reason::environment);
    EXPECT_EQ(found->text, "CartPole-v0 ends an episode after 200 steps: no running reward can pass the goal of 300.0");
  }
}

}  // namespace
}  // namespace caftan::cartpole::goal_test
