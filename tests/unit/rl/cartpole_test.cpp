#include "caftan/rl/cartpole.hpp"

#include <gtest/gtest.h>

#include <any>
#include <functional>
#include <vector>

namespace caftan::rl::cartpole_test {
namespace {

using Chooser = std::function<int(const CartPoleState&, int step)>;

int push_towards_the_fall(const CartPoleState& state, int) { return state[2] + state[3] > 0 ? 1 : 0; }
int alternate(const CartPoleState&, int step) { return step % 2; }

struct Course {
  int steps = 0;
  bool terminated = false;
  double reward = 0;
};

/// Plays one episode of at most 500 steps; the state stays in `environment`.
Course play(CartPole& environment, const Chooser& choose) {
  Course course;
  while (course.steps < 500 && !course.terminated) {
    const auto transition = environment.step(choose(environment.state(), course.steps));
    if (!transition) throw std::runtime_error(transition.error().message());
    ++course.steps;
    course.terminated = transition->terminated;
    course.reward += transition->reward;
  }
  return course;
}

TEST(CartPole, EpisodeOfSeed0IsBitEqualToGymnasium) {
  CartPole environment;
  ASSERT_TRUE(environment.reset(0));
  const CartPoleState start = {0.013696168732145436, -0.02302132862361297, -0.045902647606380534, -0.04834723644714709};
  EXPECT_EQ(environment.state(), start);
  const Course course = play(environment, push_towards_the_fall);
  EXPECT_EQ(course.steps, 334);
  EXPECT_TRUE(course.terminated);
  EXPECT_EQ(course.reward, 334.0);
  const CartPoleState end = {-2.4084909319287977, -0.3886995569091872, 0.00761730896540313, -0.004843876371139921};
  EXPECT_EQ(environment.state(), end);
}

/// Archives of a test: the values in their order.
struct Writer {
  std::vector<std::any> values{};
  template <class T>
  Writer& operator&(const T& value) {
    values.emplace_back(value);
    return *this;
  }
};
struct Reader {
  const std::vector<std::any>& values;
  std::size_t at = 0;
  template <class T>
  Reader& operator&(T& value) {
    value = std::any_cast<T>(values.at(at++));
    return *this;
  }
};

TEST(CartPole, AnEpisodeThatWasWrittenGoesOnWithTheSameBits) {
  CartPole environment;
  ASSERT_TRUE(environment.reset(7));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(environment.step(i % 2));
  Writer writer;
  environment.serialize(writer, 0);
  CartPole other;
  Reader reader{writer.values};
  other.serialize(reader, 0);
  EXPECT_EQ(other.state(), environment.state());
  EXPECT_EQ(play(other, alternate).steps, play(environment, alternate).steps);
  ASSERT_TRUE(environment.reset());
  ASSERT_TRUE(other.reset());
  EXPECT_EQ(other.state(), environment.state()) << "the next episode, too";
}

TEST(CartPole, EpisodeOfSeed42IsBitEqualToGymnasium) {
  CartPole environment;
  ASSERT_TRUE(environment.reset(42));
  const CartPoleState start = {0.027395604855596334, -0.006112156024794771, 0.03585979199113824, 0.019736802905936393};
  EXPECT_EQ(environment.state(), start);
  const Course course = play(environment, push_towards_the_fall);
  EXPECT_EQ(course.steps, 500);
  EXPECT_FALSE(course.terminated);
  const CartPoleState end = {1.7810224397808199, -0.018415983804938058, -0.004148111012008555, 0.2911507492417898};
  EXPECT_EQ(environment.state(), end);
}

TEST(CartPole, AlternatingActionsFallAsInGymnasium) {
  CartPole environment;
  ASSERT_TRUE(environment.reset(0));
  EXPECT_EQ(play(environment, alternate).steps, 39);
  EXPECT_NEAR(environment.state()[0], -0.0670171, 5e-8);
  ASSERT_TRUE(environment.reset(42));
  EXPECT_EQ(play(environment, alternate).steps, 23);
  EXPECT_NEAR(environment.state()[0], -0.0232322, 5e-8);
}

TEST(CartPole, ResetWithoutASeedDrawsTheNextStart) {
  CartPole environment;
  ASSERT_TRUE(environment.reset(7));
  const CartPoleState first = environment.state();
  ASSERT_TRUE(environment.reset());
  const CartPoleState second = environment.state();
  EXPECT_NE(first, second);
  ASSERT_TRUE(environment.reset(7));
  EXPECT_EQ(environment.state(), first);
  ASSERT_TRUE(environment.reset());
  EXPECT_EQ(environment.state(), second);
}

TEST(CartPole, ObservationIsTheStateRoundedToFloat) {
  CartPole environment;
  const auto observation = environment.reset(3).value();
  ASSERT_EQ(observation.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(observation[i], static_cast<float>(environment.state()[i]));
}

TEST(CartPole, RefusesAnActionOutOfRangeAndKeepsItsState) {
  CartPole environment;
  ASSERT_TRUE(environment.reset(1));
  const CartPoleState before = environment.state();
  for (const int action : {-1, 2}) {
    const auto transition = environment.step(action);
    ASSERT_FALSE(transition);
    EXPECT_EQ(transition.error().code(), Errc::bad_arguments);
  }
  EXPECT_EQ(environment.state(), before);
}

TEST(CartPole, RefusesAStepBeforeTheFirstResetAndAfterTheEnd) {
  CartPole environment;
  EXPECT_FALSE(environment.step(0));
  ASSERT_TRUE(environment.reset(0));
  play(environment, alternate);
  const auto transition = environment.step(0);
  ASSERT_FALSE(transition);
  EXPECT_EQ(transition.error().code(), Errc::bad_arguments);
}

TEST(CartPole, SuttonBartoRewardIsMinusOneOnTheLastStepOnly) {
  CartPole environment({.id = "CartPole", .solved_at = {}, .semi_implicit = false, .sutton_barto_reward = true});
  ASSERT_TRUE(environment.reset(0));
  EXPECT_EQ(play(environment, alternate).reward, -1.0);
}

TEST(CartPole, SemiImplicitEulerMovesByTheNewVelocities) {
  CartPole environment({.id = "CartPole", .solved_at = {}, .semi_implicit = true, .sutton_barto_reward = false});
  ASSERT_TRUE(environment.reset(0));
  const CartPoleState before = environment.state();
  ASSERT_TRUE(environment.step(1));
  const CartPoleState& after = environment.state();
  EXPECT_EQ(after[0], before[0] + 0.02 * after[1]);
  EXPECT_EQ(after[2], before[2] + 0.02 * after[3]);
}

}  // namespace
}  // namespace caftan::rl::cartpole_test
