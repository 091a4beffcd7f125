// Environments of MuJoCo, where the build has it; elsewhere they say what to install.
#include "caftan/rl/mujoco.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "caftan/rl/checked_environment.hpp"
#include "caftan/rl/environments.hpp"

namespace caftan::rl::mujoco_test {
namespace {

using Observation = std::vector<float>;

/// Returns why the build has no MuJoCo; empty = it has.
std::string reason_to_skip() {
  const auto made = make_mujoco_reacher();
  if (made) return {};
  EXPECT_EQ(made.error().code(), Errc::invalid_config);
  EXPECT_NE(made.error().text().find("install libmujoco-dev"), std::string::npos) << made.error().text();
  EXPECT_TRUE(Environments().check("MujocoReacher")) << "a file may name it: the host that plays it may have it";
  return made.error().text();
}

Observation begun(Environment& environment, std::uint64_t seed) {
  const auto first = environment.reset(seed).value();
  return {first.begin(), first.end()};
}

TEST(Mujoco, EN1_EN2_EN3_EN4_EN5_EN6_EN7_EachEnvironmentKeepsTheRules) {
  if (const auto reason = reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* const id : {"MujocoCartPole", "MujocoReacher"}) {
    const auto checked = check_environment([&] { return Environments().make(id); });
    EXPECT_TRUE(checked) << id << ": " << checked.error().message();
  }
}

TEST(Mujoco, ThePoleFallsToTheSideWhereItLeansAndTheForceMovesTheCart) {
  if (const auto reason = reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
  const auto environment = Environments().make("MujocoCartPole").value();
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    const Observation first = begun(*environment, seed);
    Observation seen = first;
    int steps = 0;
    for (bool ended = false; !ended; ++steps) {
      const auto taken = environment->step_continuous(std::array{0.0F}).value();
      EXPECT_EQ(taken.reward, 1.0);
      seen.assign(taken.observation.begin(), taken.observation.end());
      ended = taken.ended();
    }
    EXPECT_LT(steps, 200) << seed;
    EXPECT_GT(std::abs(seen[1]), 0.2F) << seed;
  }
  const Observation first = begun(*environment, 1);
  Observation pushed;
  for (int step = 0; step < 5; ++step) {
    const auto taken = environment->step_continuous(std::array{1.0F}).value();
    pushed.assign(taken.observation.begin(), taken.observation.end());
  }
  EXPECT_GT(pushed[2], first[2]) << "the force is to the right";
  EXPECT_LT(pushed[3], first[3]) << "the pole stays behind";
  ASSERT_EQ(begun(*environment, 1), first);
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(environment->step_continuous(std::array{9.0F}));
  const auto clipped = environment->step_continuous(std::array{9.0F}).value();
  EXPECT_TRUE(std::ranges::equal(clipped.observation, pushed)) << "a force beyond the bound is the bound";
}

TEST(Mujoco, TheHandIsWhereTheJointsPutItAndReachesTheTarget) {
  if (const auto reason = reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
  const auto environment = Environments().make("MujocoReacher").value();
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    Observation seen = begun(*environment, seed);
    double distance = 0;
    for (int step = 1; step <= 50; ++step) {
      const double first = std::atan2(seen[2], seen[0]);
      const double both = first + std::atan2(seen[3], seen[1]);
      const double x = 0.1 * (std::cos(first) + std::cos(both));
      const double y = 0.1 * (std::sin(first) + std::sin(both));
      ASSERT_NEAR(x - seen[4], seen[8], 1e-6) << seed;
      ASSERT_NEAR(y - seen[5], seen[9], 1e-6) << seed;
      // Towards the angles with which two links of 0.1 m reach the target.
      const double far = std::min(std::hypot(seen[4], seen[5]) / 0.2, 1.0);
      const double elbow = 2 * std::acos(far);
      const double shoulder = std::atan2(seen[5], seen[4]) - elbow / 2;
      const auto torque = [](double wanted, double is, double speed) {
        return static_cast<float>(
            std::clamp(5 * std::remainder(wanted - is, 2 * std::acos(-1.0)) - 0.3 * speed, -1.0, 1.0));
      };
      const std::array action{torque(shoulder, first, seen[6]), torque(elbow, both - first, seen[7])};
      const auto taken = environment->step_continuous(action).value();
      seen.assign(taken.observation.begin(), taken.observation.end());
      distance = std::hypot(seen[8], seen[9]);
      const double effort = static_cast<double>(action[0] * action[0] + action[1] * action[1]);
      ASSERT_NEAR(taken.reward, -distance - 0.1 * effort, 1e-6) << seed;
      EXPECT_EQ(taken.truncated, step == 50);
      EXPECT_FALSE(taken.terminated);
    }
    EXPECT_LT(distance, 0.05) << seed;
  }
}

}  // namespace
}  // namespace caftan::rl::mujoco_test
