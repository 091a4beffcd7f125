#include "play/episode.hpp"

#include <gtest/gtest.h>

#include "caftan/rl/environments.hpp"

namespace caftan::play::episode_test {
namespace {

/// A policy whose outputs are its last biases, whatever it observes.
agents::Policy constant_policy(const rl::EnvironmentSpec& spec, float last) {
  const agents::PolicyShape shape = agents::shape_for(spec, 2, 1);
  std::vector<float> weights(agents::weight_count(shape), 0.0F);
  weights[weights.size() - 1 - (shape.continuous ? shape.outputs : 0)] = last;
  agents::Policy policy(shape);
  policy.load(weights).value();
  return policy;
}

TEST(PlayEpisode, HasASceneForEachStepAndTheReturnSoFar) {
  const auto environment = rl::make_environment("MountainCar-v0");
  agents::Policy policy = constant_policy((*environment)->spec(), 1);
  const auto episode = play_episode(**environment, "MountainCar-v0", policy, 1, 1000);
  ASSERT_TRUE(episode) << episode.error().text();
  EXPECT_EQ(episode->scenes.size(), 201U);
  EXPECT_EQ(episode->returns.size(), 201U);
  EXPECT_EQ(episode->returns.front(), 0);
  EXPECT_EQ(episode->returns.back(), -200);
  EXPECT_TRUE(episode->truncated);
  EXPECT_FALSE(episode->cut);
  const auto cut = play_episode(**environment, "MountainCar-v0", policy, 1, 5);
  EXPECT_EQ(cut->scenes.size(), 6U);
  EXPECT_TRUE(cut->cut);
}

TEST(PlayEpisode, TakesContinuousActions) {
  const auto environment = rl::make_environment("Pendulum-v1");
  agents::Policy policy = constant_policy((*environment)->spec(), 0.5F);
  const auto episode = play_episode(**environment, "Pendulum-v1", policy, 3, 1000);
  ASSERT_TRUE(episode) << episode.error().text();
  const auto alone = rl::make_environment("Pendulum-v1");
  ASSERT_TRUE((*alone)->reset(3));
  double sum = 0;
  for (int step = 0; step < 200; ++step) sum += (*alone)->step_continuous(std::vector<float>{1.0F})->reward;
  EXPECT_DOUBLE_EQ(episode->returns.back(), sum) << "half of the bound, which is 2";
}

TEST(CheckFits, SaysWhatThePolicyIsFor) {
  const auto environment = rl::make_environment("Acrobot-v1");
  agents::Policy policy = constant_policy(rl::make_environment("CartPole-v1").value()->spec(), 1);
  const auto refused = play_episode(**environment, "Acrobot-v1", policy, 1, 10);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("the policy is for 4 observations and 2 actions, Acrobot-v1 has 6 observations "
                                        "and 3 actions"),
            std::string::npos)
      << refused.error().text();
}

}  // namespace
}  // namespace caftan::play::episode_test
