#include "caftan/rl/environment.hpp"

#include <gtest/gtest.h>

#include "caftan/rl/cartpole.hpp"

namespace caftan::rl::environment_test {
namespace {

std::unique_ptr<Environment> make_known(std::string_view id) {
  auto made = make_environment(id);
  if (!made) throw std::runtime_error(made.error().message());
  return *std::move(made);
}

/// Pushes towards the side the pole falls to, which holds it up for hundreds of steps.
int balance(std::span<const float> observation) { return observation[2] + observation[3] > 0 ? 1 : 0; }

TEST(MakeEnvironment, KnowsTheRegisteredLimitsAndThresholds) {
  const auto first = make_known("CartPole-v0");
  EXPECT_EQ(first->spec().max_steps, 200);
  EXPECT_EQ(first->spec().solved_at, 195.0);
  const auto second = make_known("CartPole-v1");
  EXPECT_EQ(second->spec().id, "CartPole-v1");
  EXPECT_EQ(second->spec().max_steps, 500);
  EXPECT_EQ(second->spec().solved_at, 475.0);
  EXPECT_EQ(second->spec().observation_size, 4U);
  EXPECT_EQ(second->spec().actions, 2);
}

TEST(MakeEnvironment, NamesTheKnownOnesWhenAskedForAnother) {
  const auto made = make_environment("CartPole-v2");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::bad_arguments);
  EXPECT_NE(made.error().text().find("CartPole-v0, CartPole-v1"), std::string::npos);
}

TEST(TimeLimit, TruncatesExactlyAtTheLimitWithoutTerminating) {
  const auto environment = make_known("CartPole-v1");
  auto observation = environment->reset(42).value();
  for (int step = 1; step <= 500; ++step) {
    const auto transition = environment->step(balance(observation));
    ASSERT_TRUE(transition) << step;
    EXPECT_FALSE(transition->terminated) << step;
    EXPECT_EQ(transition->truncated, step == 500) << step;
    observation = transition->observation;
  }
  EXPECT_FALSE(environment->step(0));
}

TEST(TimeLimit, LeavesAnEarlierEndAsItIs) {
  const auto environment = make_known("CartPole-v0");
  ASSERT_TRUE(environment->reset(42));
  for (int step = 0;; ++step) {
    const auto transition = environment->step(step % 2);
    ASSERT_TRUE(transition);
    EXPECT_FALSE(transition->truncated);
    if (!transition->ended()) continue;
    EXPECT_EQ(step + 1, 23);
    break;
  }
  EXPECT_FALSE(environment->step(0));
}

TEST(TimeLimit, MayTruncateOnTheStepThatTerminates) {
  TimeLimit environment(std::make_unique<CartPole>(), 23);
  ASSERT_TRUE(environment.reset(42));
  for (int step = 0; step < 22; ++step) ASSERT_TRUE(environment.step(step % 2));
  const auto last = environment.step(0);
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->terminated);
  EXPECT_TRUE(last->truncated);
}

/// An environment whose episodes never end and that accepts any action.
class Endless final : public Environment {
 public:
  const EnvironmentSpec& spec() const noexcept override { return spec_; }
  FirstObservation reset(std::uint64_t) override { return std::span<const float>(); }
  FirstObservation reset() override { return std::span<const float>(); }
  Result<Transition> step(int) override { return Transition{}; }

 private:
  const EnvironmentSpec spec_{.id = "endless"};
};

TEST(TimeLimit, TakesNoStepBeforeTheFirstReset) {
  TimeLimit environment(std::make_unique<Endless>(), 2);
  EXPECT_FALSE(environment.step(0));
  ASSERT_TRUE(environment.reset());
  EXPECT_TRUE(environment.step(0));
}

TEST(TimeLimit, DoesNotCountARefusedStep) {
  TimeLimit environment(std::make_unique<CartPole>(), 2);
  EXPECT_FALSE(environment.step(0)) << "before the first reset";
  ASSERT_TRUE(environment.reset(1));
  EXPECT_FALSE(environment.step(5));
  ASSERT_TRUE(environment.step(0));
  const auto second = environment.step(1);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->truncated);
  ASSERT_TRUE(environment.reset());
  EXPECT_TRUE(environment.step(0));
}

}  // namespace
}  // namespace caftan::rl::environment_test
