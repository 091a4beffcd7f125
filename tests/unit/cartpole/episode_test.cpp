// What an evaluation asks of its environment.
#include "cartpole_learning/episode.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace caftan::cartpole::episode_test {
namespace {

/// Ends each episode after three steps of reward 2, and notes the seeds.
class ThreeSteps final : public rl::Environment {
 public:
  const rl::EnvironmentSpec& spec() const noexcept override { return spec_; }
  rl::FirstObservation reset(std::uint64_t seed) override {
    seeds.push_back(seed);
    return reset();
  }
  rl::FirstObservation reset() override {
    steps_ = 0;
    return std::span<const float>(observation_);
  }
  Result<rl::Transition> step(int) override {
    return rl::Transition{.observation = observation_, .reward = 2, .terminated = ++steps_ == 3, .truncated = false};
  }

  std::vector<std::uint64_t> seeds;

 private:
  const rl::EnvironmentSpec spec_{.id = "three", .observation_size = 4, .actions = 2};
  const std::array<float, 4> observation_{};
  int steps_ = 0;
};

TEST(Evaluation, EachEpisodeStartsFromASeedOfItsOwnAndIsPlayedToItsEnd) {
  rl::Pcg64 random(1);
  const Policy policy(8, 0.0, random);
  ThreeSteps environment;
  EXPECT_EQ(evaluate_greedily(policy, environment, 7, 20).value(), std::vector<double>(20, 6.0));
  EXPECT_EQ(std::set(environment.seeds.begin(), environment.seeds.end()).size(), 20U);
  ThreeSteps again;
  ASSERT_TRUE(evaluate_greedily(policy, again, 7, 20));
  EXPECT_EQ(again.seeds, environment.seeds);
}

}  // namespace
}  // namespace caftan::cartpole::episode_test
