#include "caftan/rl/repeated_action.hpp"

#include <gtest/gtest.h>

#include "caftan/rl/small_worlds.hpp"

namespace caftan::rl::repeated_action_test {
namespace {

TEST(RepeatedAction, TakesEachActionSeveralTimesAndAddsTheRewards) {
  const auto plain = make_environment("MountainCar-v0");
  RepeatedAction repeated(make_environment("MountainCar-v0").value(), 4);
  EXPECT_EQ(repeated.spec().max_steps, 50);
  EXPECT_EQ(repeated.spec().observation_size, 2U);
  ASSERT_TRUE((*plain)->reset(3));
  ASSERT_TRUE(repeated.reset(3));
  for (int decision = 0; decision < 50; ++decision) {
    std::vector<float> observation;
    for (int step = 0; step < 4; ++step) {
      const auto taken = (*plain)->step(decision % 3);
      ASSERT_TRUE(taken);
      observation.assign(taken->observation.begin(), taken->observation.end());
    }
    const auto taken = repeated.step(decision % 3);
    ASSERT_TRUE(taken);
    EXPECT_EQ(std::vector<float>(taken->observation.begin(), taken->observation.end()), observation);
    EXPECT_EQ(taken->reward, -4);
    EXPECT_EQ(taken->truncated, decision == 49);
  }
}

TEST(RepeatedAction, EndsWithTheEpisodeAndPassesErrorsOn) {
  RepeatedAction repeated(std::make_unique<Catch>(), 4);
  EXPECT_FALSE(repeated.step(1)) << "no reset before";
  ASSERT_TRUE(repeated.reset(1));
  EXPECT_FALSE(repeated.step(7));
  EXPECT_FALSE(repeated.step(1)->ended());
  EXPECT_FALSE(repeated.step(1)->ended());
  const auto last = repeated.step(1);
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->terminated) << "the ninth step, not the twelfth";
}

}  // namespace
}  // namespace caftan::rl::repeated_action_test
