#include "actor_critic/model.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "actor_critic/running_scale.hpp"

namespace caftan::actor_critic::model_test {
namespace {

/// What an acting policy with the model's weights says has to be what the model says.
void expect_same_probabilities(const agents::PolicyShape& shape) {
  const Model model(shape, 11);
  std::vector<float> weights = RunningScale::of(shape.observation).weights();
  model.append_policy(weights);
  agents::Policy policy(shape);
  ASSERT_TRUE(policy.load(weights));
  rl::Pcg64 random(1);
  std::vector<float> observations(30 * shape.observation);
  for (float& value : observations) value = static_cast<float>(random.uniform(-2, 2));
  agents::Actions actions;
  policy.act(observations, random, actions);
  const at::Tensor rows =
      at::from_blob(observations.data(), {30, static_cast<std::int64_t>(shape.observation)}, at::kFloat);
  at::Tensor chosen;
  if (shape.continuous) {
    chosen = at::from_blob(actions.continuous.data(), {30, static_cast<std::int64_t>(shape.outputs)}, at::kFloat);
  } else {
    chosen = at::from_blob(actions.discrete.data(), {30}, at::kInt).to(at::kLong);
  }
  const ActionFacts facts = model.judge(rows, chosen);
  for (std::int64_t row = 0; row < 30; ++row) {
    EXPECT_NEAR(facts.log_probabilities[row].item<float>(), actions.log_probabilities[static_cast<std::size_t>(row)],
                1e-4);
  }
}

TEST(Model, AgreesWithThePolicyThatActs) {
  expect_same_probabilities({.observation = 3, .hidden = 16, .layers = 2, .outputs = 5});
  expect_same_probabilities({.observation = 4, .hidden = 8, .layers = 1, .outputs = 2, .continuous = true});
}

TEST(Model, EntropyIsThatOfTheDistribution) {
  const Model discrete({.observation = 3, .hidden = 4, .layers = 1, .outputs = 4}, 1);
  const at::Tensor zeros = at::zeros({2, 3});
  EXPECT_NEAR(discrete.judge(zeros, at::zeros({2}, at::kLong)).entropy.item<double>(), std::log(4.0), 1e-4)
      << "at first all actions are about equally probable";
  const Model continuous({.observation = 3, .hidden = 4, .layers = 1, .outputs = 2, .continuous = true}, 1);
  EXPECT_NEAR(continuous.judge(zeros, at::zeros({2, 2})).entropy.item<double>(), 2 * 1.4189385, 1e-4);
}

TEST(Model, BeginsWithOrthogonalWeights) {
  const Model model({.observation = 3, .hidden = 6, .layers = 2, .outputs = 2}, 4);
  const at::Tensor first = model.parameters()[0].detach();  // [6, 3]: orthogonal columns of length sqrt 2
  EXPECT_TRUE(at::allclose(first.t().mm(first), 2 * at::eye(3), 1e-4, 1e-4));
  const at::Tensor second = model.parameters()[2].detach();
  EXPECT_TRUE(at::allclose(second.mm(second.t()), 2 * at::eye(6), 1e-4, 1e-4));
  EXPECT_EQ(model.parameters().size(), 12U) << "two networks of three layers";
}

}  // namespace
}  // namespace caftan::actor_critic::model_test
