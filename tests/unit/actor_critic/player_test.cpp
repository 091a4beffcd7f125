#include "actor_critic/player.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "actor_critic/running_scale.hpp"
#include "agents/environments.hpp"

namespace caftan::actor_critic::player_test {
namespace {

Player make_player(const std::string& name, std::size_t n, std::uint64_t seed, agents::PolicyShape& shape) {
  const rl::Environments known;
  auto environments = agents::make_environments(known, {name, 1}, n, {}).value();
  shape = agents::shape_for(environments->spec(), 8, 1);
  Player player(std::move(environments), shape, seed);
  rl::Pcg64 random(3);
  std::vector<float> weights(agents::weight_count(shape));
  for (float& weight : weights) weight = static_cast<float>(random.uniform(-1, 1));
  player.load(weights).value();
  return player;
}

TEST(Player, RecordsWhatTheEnvironmentsDid) {
  agents::PolicyShape shape;
  Player player = make_player("CartPole-v1", 3, 1, shape);
  ASSERT_TRUE(player.begin_part(0));
  const auto first = player.play(200);
  ASSERT_TRUE(first);
  EXPECT_TRUE(check_trajectories(*first, shape));
  const auto terminated = std::ranges::count(first->ends, kTerminated);
  EXPECT_GT(terminated, 3);
  EXPECT_EQ(static_cast<std::size_t>(terminated), first->returns.size());
  // Each step but those of the episodes under way counts in a return, with a reward of 1.
  const double ended = std::accumulate(first->returns.begin(), first->returns.end(), 0.0);
  EXPECT_LT(ended, 600);
  const auto second = player.play(300);
  ASSERT_TRUE(second);
  EXPECT_TRUE(
      std::equal(second->observations.begin(), second->observations.begin() + 12, first->observations.end() - 12))
      << "it goes on where it stood";
}

TEST(Player, KeepsTheLastObservationOfEpisodesThatAreTruncated) {
  agents::PolicyShape shape;
  Player player = make_player("Pendulum-v1", 2, 1, shape);
  ASSERT_TRUE(player.begin_part(0));
  const auto played = player.play(250);
  ASSERT_TRUE(played);
  EXPECT_TRUE(check_trajectories(*played, shape)) << "continuous actions";
  EXPECT_EQ(std::ranges::count(played->ends, kTruncated), 2);
  EXPECT_EQ(std::ranges::count(played->ends, kTerminated), 0);
  EXPECT_EQ(played->ends[2 * 199], kTruncated);
  ASSERT_EQ(played->last_observations.size(), 6U);
  const std::span<const float> next(played->observations.data() + 2 * 200 * 3, 3);
  EXPECT_FALSE(std::ranges::equal(next, std::span(played->last_observations).first(3)))
      << "the next episode begins elsewhere";
}

TEST(Player, APartHasTheSameEpisodesWheneverItBegins) {
  agents::PolicyShape shape;
  Player one = make_player("CartPole-v1", 2, 7, shape);
  Player other = make_player("CartPole-v1", 2, 7, shape);
  ASSERT_TRUE(one.begin_part(0));
  ASSERT_TRUE(one.play(77));
  ASSERT_TRUE(one.begin_part(4));
  ASSERT_TRUE(other.begin_part(4));
  const auto first = one.play(50);
  const auto second = other.play(50);
  EXPECT_EQ(first->observations, second->observations);
  EXPECT_EQ(first->actions, second->actions);
  EXPECT_EQ(first->returns, second->returns);
  ASSERT_TRUE(other.begin_part(5));
  EXPECT_NE(other.play(50)->observations, first->observations);
}

TEST(CheckTrajectories, NamesTheArrayThatDoesNotFit) {
  agents::PolicyShape shape;
  Player player = make_player("CartPole-v1", 2, 7, shape);
  ASSERT_TRUE(player.begin_part(0));
  const Trajectories whole = player.play(5).value();
  const auto refused = [&](auto spoil) {
    Trajectories spoiled = whole;
    spoil(spoiled);
    const auto checked = check_trajectories(spoiled, shape);
    return checked ? std::string() : checked.error().text();
  };
  EXPECT_NE(refused([](Trajectories& t) { t.rewards.pop_back(); }).find("9 rewards, not 10"), std::string::npos);
  EXPECT_NE(refused([](Trajectories& t) { t.observations.push_back(0); }).find("49 observations, not 48"),
            std::string::npos);
  EXPECT_NE(refused([](Trajectories& t) { t.ends[3] = kTruncated; }).find("last observations"), std::string::npos);
  EXPECT_NE(refused([](Trajectories& t) { t.actions[3] = 2; }).find("an action that the policy does not have"),
            std::string::npos);
  EXPECT_NE(refused([](Trajectories& t) { t.actions[3] = -1; }), "");
  EXPECT_NE(refused([](Trajectories& t) { t.log_probabilities.clear(); }), "");
  EXPECT_NE(refused([](Trajectories& t) { t = {}; }), "");
}

TEST(RunningScale, IsMeanAndDeviationOfAllThatWasAdded) {
  RunningScale scale = RunningScale::of(2);
  EXPECT_EQ(scale.weights(), (std::vector<float>{0, 0, 1, 1})) << "before there is any";
  scale.add(std::vector<float>{1, 5, 3, 5});
  scale.add(std::vector<float>{8, 5});
  const std::vector<float> weights = scale.weights();
  EXPECT_FLOAT_EQ(weights[0], 4);
  EXPECT_FLOAT_EQ(weights[2], static_cast<float>(1 / std::sqrt((9.0 + 1 + 16) / 3)));
  EXPECT_FLOAT_EQ(weights[1], 5);
  EXPECT_EQ(weights[3], 1) << "what never changes is not scaled";
}

}  // namespace
}  // namespace caftan::actor_critic::player_test
