#include "agents/greedy.hpp"

#include <gtest/gtest.h>

#include "agents/environments.hpp"

namespace caftan::agents::greedy_test {
namespace {

/// A policy that always pushes right.
Policy rightwards(const rl::EnvironmentSpec& spec) {
  const PolicyShape shape = shape_for(spec, 2, 1);
  std::vector<float> weights(weight_count(shape), 0.0F);
  weights.back() = 1;  // the bias of the last action
  Policy policy(shape);
  policy.load(weights).value();
  return policy;
}

TEST(PlayGreedily, PlaysOneEpisodeInEachEnvironmentAsAloneWouldBe) {
  const rl::Environments known;
  const auto environments = make_environments(known, {"CartPole-v1", 1}, 6, {});
  ASSERT_TRUE(environments);
  Policy policy = rightwards((*environments)->spec());
  const auto returns = play_greedily(**environments, policy, 40, 1000);
  ASSERT_TRUE(returns);
  for (std::uint64_t i = 0; i < 6; ++i) {
    const auto alone = known.make("CartPole-v1");
    ASSERT_TRUE((*alone)->reset(40 + i));
    double sum = 0;
    for (bool ended = false; !ended;) {
      const auto step = (*alone)->step(1);
      sum += step->reward;
      ended = step->ended();
    }
    EXPECT_EQ((*returns)[i], sum) << i;
  }
}

TEST(PlayGreedily, CutsEpisodesThatAreTooLong) {
  const rl::Environments known;
  const auto environments = make_environments(known, {"MountainCar-v0", 2}, 3, {});
  ASSERT_TRUE(environments);
  EXPECT_EQ((*environments)->spec().max_steps, 100);
  Policy policy = rightwards((*environments)->spec());
  EXPECT_EQ(play_greedily(**environments, policy, 1, 10).value(), (std::vector<double>{-20, -20, -20}));
}

TEST(MakeEnvironments, NamesTheNearestOfAnUnknownOne) {
  const rl::Environments known;
  for (const std::int64_t repeat : {1, 3}) {
    const auto refused = make_environments(known, {"CartPole-v2", repeat}, 1, {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text().find("did you mean 'CartPole-v"), std::string::npos) << refused.error().text();
  }
}

}  // namespace
}  // namespace caftan::agents::greedy_test
