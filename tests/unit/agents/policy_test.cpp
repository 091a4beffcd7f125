#include "agents/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace caftan::agents::policy_test {
namespace {

/// Weights that differ from each other, with a mean and a scale that do something.
std::vector<float> made_weights(const PolicyShape& shape) {
  rl::Pcg64 random(5);
  std::vector<float> weights(weight_count(shape));
  for (float& weight : weights) weight = static_cast<float>(random.uniform(-1, 1));
  return weights;
}

std::vector<float> made_observations(const PolicyShape& shape, std::size_t rows) {
  rl::Pcg64 random(6);
  std::vector<float> observations(rows * shape.observation);
  for (float& value : observations) value = static_cast<float>(random.uniform(-3, 3));
  return observations;
}

/// The outputs for one observation, with std::tanh and in double.
std::vector<double> naive_outputs(const PolicyShape& shape, const std::vector<float>& weights,
                                  const float* observation) {
  std::size_t at = 2 * shape.observation;
  std::vector<double> units;
  for (std::size_t i = 0; i < shape.observation; ++i) {
    const double value = (static_cast<double>(observation[i]) - static_cast<double>(weights[i])) *
                         static_cast<double>(weights[shape.observation + i]);
    units.push_back(std::min(std::max(value, -10.0), 10.0));
  }
  for (std::size_t layer = 0; layer <= shape.layers; ++layer) {
    const std::size_t out = layer == shape.layers ? shape.outputs : shape.hidden;
    std::vector<double> next;
    for (std::size_t unit = 0; unit < out; ++unit) {
      double sum = static_cast<double>(weights[at + out * units.size() + unit]);
      for (std::size_t i = 0; i < units.size(); ++i) {
        sum += static_cast<double>(weights[at + unit * units.size() + i]) * units[i];
      }
      if (layer < shape.layers) sum = shape.relu ? std::max(sum, 0.0) : std::tanh(sum);
      next.push_back(sum);
    }
    at += out * units.size() + out;
    units = std::move(next);
  }
  return units;
}

const PolicyShape kDiscrete{.observation = 3, .hidden = 7, .layers = 2, .outputs = 4};
const PolicyShape kContinuous{.observation = 3, .hidden = 5, .layers = 1, .outputs = 2, .continuous = true};

TEST(Policy, ProbabilitiesAreThoseOfTheNetwork) {
  for (const bool relu : {false, true}) {
    PolicyShape shape = kDiscrete;
    shape.relu = relu;
    const std::vector<float> weights = made_weights(shape);
    Policy policy(shape);
    ASSERT_TRUE(policy.load(weights));
    const std::vector<float> observations = made_observations(shape, 40);
    rl::Pcg64 random(1);
    Actions actions;
    policy.act(observations, random, actions);
    Actions greedy;
    policy.act_greedily(observations, greedy);
    for (std::size_t row = 0; row < 40; ++row) {
      const auto outputs = naive_outputs(shape, weights, observations.data() + row * shape.observation);
      double sum = 0;
      for (const double output : outputs) sum += std::exp(output);
      const auto action = static_cast<std::size_t>(actions.discrete[row]);
      EXPECT_NEAR(actions.log_probabilities[row], outputs[action] - std::log(sum), 1e-5) << row;
      EXPECT_EQ(greedy.discrete[row], std::max_element(outputs.begin(), outputs.end()) - outputs.begin()) << row;
    }
  }
}

TEST(Policy, DrawsEachActionAsOftenAsItIsProbable) {
  const std::vector<float> weights = made_weights(kDiscrete);
  Policy policy(kDiscrete);
  ASSERT_TRUE(policy.load(weights));
  std::vector<float> observations;
  for (int row = 0; row < 20000; ++row) observations.insert(observations.end(), {0.5F, -0.5F, 1.0F});
  const auto outputs = naive_outputs(kDiscrete, weights, observations.data());
  double sum = 0;
  for (const double output : outputs) sum += std::exp(output);
  rl::Pcg64 random(9);
  Actions actions;
  policy.act(observations, random, actions);
  for (std::int32_t action = 0; action < 4; ++action) {
    const auto count = static_cast<double>(std::ranges::count(actions.discrete, action));
    EXPECT_NEAR(count / 20000, std::exp(outputs[static_cast<std::size_t>(action)]) / sum, 0.02) << action;
  }
}

TEST(Policy, ContinuousActionsHaveTheMeanAndTheDeviationOfTheNetwork) {
  std::vector<float> weights = made_weights(kContinuous);
  weights[weights.size() - 2] = std::log(0.5F);
  weights[weights.size() - 1] = std::log(2.0F);
  Policy policy(kContinuous);
  ASSERT_TRUE(policy.load(weights));
  constexpr std::size_t kRows = 20000;
  std::vector<float> observations;
  for (std::size_t row = 0; row < kRows; ++row) observations.insert(observations.end(), {0.5F, -0.5F, 1.0F});
  const auto means = naive_outputs(kContinuous, weights, observations.data());
  rl::Pcg64 random(2);
  Actions actions;
  policy.act(observations, random, actions);
  for (std::size_t part = 0; part < 2; ++part) {
    double sum = 0;
    double squares = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      const double distance = static_cast<double>(actions.continuous[2 * row + part]) - means[part];
      sum += distance;
      squares += distance * distance;
    }
    const double deviation = part == 0 ? 0.5 : 2.0;
    EXPECT_NEAR(sum / kRows, 0, 0.03 * deviation) << part;
    EXPECT_NEAR(std::sqrt(squares / kRows), deviation, 0.03 * deviation) << part;
  }
  const double a = (static_cast<double>(actions.continuous[0]) - means[0]) / 0.5;
  const double b = (static_cast<double>(actions.continuous[1]) - means[1]) / 2;
  EXPECT_NEAR(actions.log_probabilities[0], -(a * a + b * b) / 2 - std::log(2 * std::numbers::pi) - std::log(0.5 * 2.0),
              1e-4);
  policy.act_greedily(observations, actions);
  EXPECT_NEAR(actions.continuous[1], means[1], 1e-5);
}

TEST(Policy, TheNumberOfRowsChangesNoBit) {
  Policy policy(kDiscrete);
  ASSERT_TRUE(policy.load(made_weights(kDiscrete)));
  const std::vector<float> observations = made_observations(kDiscrete, 19);
  rl::Pcg64 together(4);
  rl::Pcg64 alone(4);
  Actions all;
  policy.act(observations, together, all);
  for (std::size_t row = 0; row < 19; ++row) {
    Actions one;
    policy.act(std::span(observations).subspan(3 * row, 3), alone, one);
    EXPECT_EQ(one.discrete[0], all.discrete[row]);
    EXPECT_EQ(one.log_probabilities[0], all.log_probabilities[row]);
  }
}

TEST(Policy, TanhIsThatOfTheLibrary) {
  std::vector<float> values;
  for (float value = -12; value <= 12; value += 0.01F) values.push_back(value);
  std::vector<float> results = values;
  tanh_all(results);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(results[i], std::tanh(values[i]), 1e-6) << values[i];
}

TEST(Policy, RefusesWeightsOfAnotherShape) {
  Policy policy(kDiscrete);
  std::vector<float> weights = made_weights(kDiscrete);
  weights.pop_back();
  EXPECT_EQ(policy.load(weights).error().code(), Errc::bad_arguments);
}

TEST(ToBounds, MapsMinusOneToOneToTheBoundsAndLeavesWhatHasNone) {
  rl::EnvironmentSpec spec;
  spec.action_low = {-2, -std::numeric_limits<float>::infinity()};
  spec.action_high = {4, 1};
  std::vector<float> out;
  to_bounds(spec, std::vector<float>{-1, 3, 1, -5, 0, 0}, out);
  EXPECT_EQ(out, (std::vector<float>{-2, 3, 4, -5, 1, 0}));
}

}  // namespace
}  // namespace caftan::agents::policy_test
