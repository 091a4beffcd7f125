#include "cartpole_batch/play.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace caftan::cartpole_batch::play_test {
namespace {

/// Ends after each `length` steps, with rewards 1, 2, 3, ... in each; remembers its resets.
class Counted final : public rl::Environment {
 public:
  explicit Counted(int length) : length_(length) { spec_.observation_size = 4; }

  const rl::EnvironmentSpec& spec() const noexcept override { return spec_; }
  rl::FirstObservation reset(std::uint64_t seed) override {
    seeds.push_back(seed);
    step_ = 0;
    return reset();
  }
  rl::FirstObservation reset() override { return std::span<const float>(observation_); }
  Result<rl::Transition> step(int action) override {
    if (action < 0) return Error(Errc::bad_arguments, "no such action");
    ++step_;
    rl::Transition transition;
    transition.observation = observation_;
    transition.reward = step_;
    transition.terminated = step_ == length_;
    return transition;
  }

  std::vector<std::uint64_t> seeds;

 private:
  rl::EnvironmentSpec spec_;
  std::array<float, 4> observation_{};
  int length_;
  int step_ = 0;
};

Result<int> always_0(const cartpole::State&) { return 0; }

TEST(Play, MakesExactlyTheStepsWithResetsInside) {
  Counted environment(3);
  const auto played = play(environment, {.seed = 1, .steps = 8, .gamma = 1}, always_0);
  ASSERT_TRUE(played) << played.error().text();
  EXPECT_EQ(played->returns, (std::vector<double>{6, 5, 3, 6, 5, 3, 3, 2})) << "each sub-episode on its own";
  EXPECT_EQ(played->rewards, (std::vector<double>{6, 6, 3}));
  EXPECT_TRUE(played->is_cut);
  EXPECT_EQ(played->mean_reward(), 6) << "without the one that was cut";
  ASSERT_EQ(environment.seeds.size(), 3U);
  EXPECT_NE(environment.seeds[0], environment.seeds[1]);
}

TEST(Play, ReturnsAreDiscounted) {
  Counted environment(2);
  const auto played = play(environment, {.seed = 1, .steps = 2, .gamma = 0.5}, always_0);
  ASSERT_TRUE(played);
  EXPECT_EQ(played->returns, (std::vector<double>{2, 2}));
}

TEST(Play, ASubEpisodeThatEndsWithTheStepsIsNotCutAndNotFollowedByAReset) {
  Counted environment(4);
  const auto played = play(environment, {.seed = 1, .steps = 8, .gamma = 1}, always_0);
  ASSERT_TRUE(played);
  EXPECT_EQ(played->rewards, (std::vector<double>{10, 10}));
  EXPECT_FALSE(played->is_cut);
  EXPECT_EQ(environment.seeds.size(), 2U);
}

TEST(Play, WhereNoneHasEndedTheCutOneCounts) {
  Counted environment(100);
  const auto played = play(environment, {.seed = 1, .steps = 3, .gamma = 1}, always_0);
  ASSERT_TRUE(played);
  EXPECT_TRUE(played->is_cut);
  EXPECT_EQ(played->mean_reward(), 6);
}

TEST(Play, RefusesNoStepsAndEndsWithTheErrorOfAChoice) {
  Counted environment(3);
  EXPECT_EQ(play(environment, {.steps = 0}, always_0).error().code(), Errc::bad_arguments);
  EXPECT_EQ(play(environment, {.steps = 2}, [](const cartpole::State&) { return -1; }).error().code(),
            Errc::bad_arguments);
  const auto lost = play(environment, {.steps = 2},
                         [](const cartpole::State&) -> Result<int> { return Error(Errc::peer_down, "gone"); });
  EXPECT_EQ(lost.error().code(), Errc::peer_down);
}

}  // namespace
}  // namespace caftan::cartpole_batch::play_test
