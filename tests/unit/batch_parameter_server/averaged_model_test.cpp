// A step of the server is one of the mean of the gradients: the same as averaging in one process by hand.
#include "batch_parameter_server/averaged_model.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "caftan/nn/fill_normal.hpp"
#include "image_training/learner.hpp"

namespace caftan::batch_parameter_server::averaged_model_test {
namespace {

using image_training::OptimizerConfig;

AveragedModel make(const OptimizerConfig& optimizer = {.lr = 0.1, .momentum = 0.9}) {
  return AveragedModel::make(models::ModelName::convnet, 10, 3, optimizer).value();
}

std::vector<at::Tensor> gradients(const AveragedModel& model, std::uint64_t seed) {
  std::vector<at::Tensor> values = model.copy_parameters();
  for (std::size_t i = 0; i < values.size(); ++i) nn::fill_normal(values[i], {.seed = seed, .call = i}, 0, 0.1);
  return values;
}

TEST(AveragedModel, EqualsMeanAndMomentumByHand) {
  AveragedModel model = make();
  std::vector<at::Tensor> parameters = model.copy_parameters();
  std::vector<at::Tensor> momentum;
  for (const at::Tensor& parameter : parameters) momentum.push_back(at::zeros_like(parameter));
  for (std::uint64_t step = 0; step < 5; ++step) {
    const auto one = gradients(model, 10 * step);
    const auto two = gradients(model, 10 * step + 1);
    const auto three = gradients(model, 10 * step + 2);
    ASSERT_TRUE(model.step({&one, &two, &three}));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      momentum[i] = 0.9 * momentum[i] + (one[i] + two[i] + three[i]) / 3;
      parameters[i] = parameters[i] - 0.1 * momentum[i];
    }
  }
  const auto reached = model.copy_parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_LE((reached[i] - parameters[i]).abs().max().item<double>(), 1e-6) << i;
    EXPECT_GT((reached[i] - make().copy_parameters()[i]).abs().max().item<double>(), 1e-3) << i;
  }
}

TEST(AveragedModel, CopiesStayAsTheyAre) {
  AveragedModel model = make();
  const auto before = model.copy_parameters();
  const auto kept = before[0].clone();
  const auto one = gradients(model, 1);
  ASSERT_TRUE(model.step({&one}));
  EXPECT_TRUE(before[0].equal(kept));
  EXPECT_FALSE(before[0].requires_grad());
}

TEST(AveragedModel, GoesOnWhereAnotherOneWas) {
  AveragedModel model = make();
  const auto one = gradients(model, 1);
  const auto two = gradients(model, 2);
  ASSERT_TRUE(model.step({&one}));
  AveragedModel other = make({.lr = 0.1, .momentum = 0.9});
  ASSERT_TRUE(other.resume(model.copy_parameters(), model.copy_buffers(), model.save_optimizer().value()));
  ASSERT_TRUE(model.step({&two}));
  ASSERT_TRUE(other.step({&two}));
  EXPECT_TRUE(model.copy_parameters()[4].equal(other.copy_parameters()[4])) << "the momentum came along";
  AveragedModel faster = make({.lr = 0.2, .momentum = 0.9});
  ASSERT_TRUE(faster.resume(model.copy_parameters(), model.copy_buffers(), model.save_optimizer().value()));
  ASSERT_TRUE(faster.step({&one}));
  ASSERT_TRUE(model.step({&one}));
  EXPECT_FALSE(model.copy_parameters()[4].equal(faster.copy_parameters()[4])) << "its learning rate is its own";
  AveragedModel heavier = make({.lr = 0.1, .momentum = 0});
  ASSERT_TRUE(heavier.resume(model.copy_parameters(), model.copy_buffers(), model.save_optimizer().value()));
  const auto from = heavier.copy_parameters();
  ASSERT_TRUE(heavier.step({&one}));
  EXPECT_TRUE(heavier.copy_parameters()[4].allclose(from[4] - 0.1 * one[4])) << "its momentum is its own";
  EXPECT_FALSE(faster.resume({at::ones({1})}, {}, model.save_optimizer().value()));
}

TEST(AveragedModel, GradientsOfAnotherModelAreRefused) {
  const AveragedModel model = make();
  auto values = gradients(model, 1);
  EXPECT_TRUE(model.check(values));
  values[2] = values[2].flatten();
  EXPECT_EQ(model.check(values).error().code(), Errc::bad_arguments);
  values = gradients(model, 1);
  values[7] = at::Tensor();
  EXPECT_EQ(model.check(values).error().code(), Errc::bad_arguments);
  values.pop_back();
  EXPECT_EQ(model.check(values).error().code(), Errc::bad_arguments);
}

}  // namespace
}  // namespace caftan::batch_parameter_server::averaged_model_test
