#include "caftan/rl/returns.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "caftan/rl/trajectory.hpp"

namespace caftan::rl::returns_test {
namespace {

TEST(DiscountedReturns, AreTheSumOfLaterRewardsEachDiscountedByItsDistance) {
  const std::array rewards = {1.0, 2.0, 4.0};
  EXPECT_EQ(discounted_returns(rewards, 0.5), (std::vector<double>{3.0, 4.0, 4.0}));
  EXPECT_EQ(discounted_returns(rewards, 0.0), (std::vector<double>{1.0, 2.0, 4.0}));
  EXPECT_EQ(discounted_returns(rewards, 1.0), (std::vector<double>{7.0, 6.0, 4.0}));
  EXPECT_TRUE(discounted_returns(std::span<const double>{}, 0.9).empty());
}

TEST(DiscountedReturns, PerObserverRestartAtEachEpisode) {
  const std::array first = {1.0, 1.0};
  const std::array second = {8.0};
  const std::array<std::span<const double>, 2> episodes = {first, second};
  EXPECT_EQ(discounted_returns(episodes, 0.5, ReturnScope::per_observer), (std::vector<double>{1.5, 1.0, 8.0}));
}

TEST(DiscountedReturns, JoinedLeakTheLaterEpisodeIntoTheEarlier) {
  const std::array first = {1.0, 1.0};
  const std::array second = {8.0};
  const std::array<std::span<const double>, 2> episodes = {first, second};
  EXPECT_EQ(discounted_returns(episodes, 0.5, ReturnScope::joined), (std::vector<double>{3.5, 5.0, 8.0}));
}

TEST(Normalize, GivesMeanZeroAndUnbiasedDeviationOne) {
  std::vector<double> values = {1.0, 2.0, 3.0, 6.0};
  normalize(values);
  EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0), 0.0, 1e-12);
  double squares = 0;
  for (const double value : values) squares += value * value;
  EXPECT_NEAR(squares / 3, 1.0, 1e-6);
}

TEST(Normalize, AddsEpsilonToTheDeviation) {
  std::vector<double> values = {-1.0, 1.0};
  normalize(values, 0.5);
  EXPECT_DOUBLE_EQ(values[1], 1.0 / (std::sqrt(2.0) + 0.5));
}

TEST(Normalize, OfOneValueOrOfEqualOnesIsZeroAndNotNan) {
  std::vector<double> one = {3.0};
  normalize(one);
  EXPECT_EQ(one.front(), 0.0);
  std::vector<double> equal = {2.0, 2.0};
  normalize(equal);
  EXPECT_EQ(equal, (std::vector<double>{0.0, 0.0}));
  std::vector<double> none;
  normalize(none);
  EXPECT_TRUE(none.empty());
}

TEST(Trajectory, KeepsStepsInOrderAndAddsItsRewards) {
  Trajectory trajectory;
  trajectory.append(std::array{1.0F, 2.0F}, 1);
  trajectory.append_reward(0.5);
  trajectory.append(std::array{3.0F, 4.0F}, 0);
  trajectory.append_reward(-2.0);
  EXPECT_EQ(trajectory.steps(), 2U);
  EXPECT_EQ(trajectory.total_reward(), -1.5);
  EXPECT_EQ(trajectory.observations, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(trajectory.actions, (std::vector<std::int32_t>{1, 0}));
  trajectory.clear();
  EXPECT_EQ(trajectory.steps(), 0U);
}

}  // namespace
}  // namespace caftan::rl::returns_test
