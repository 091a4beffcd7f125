// A step of a learner is a function of its parameters and the step's number, and measuring changes nothing.
#include "image_training/learner.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

namespace caftan::image_training::learner_test {
namespace {

using image_data::Batches;
using image_data::DataConfig;
using models::ModelName;

const image_data::DataSet& shapes() {
  static const image_data::DataSet data =
      image_data::read_data({.name = DataConfig::Name::shapes, .limit = 64}).value();
  return data;
}

Learner make(ModelName name, std::uint64_t dropout = 1) {
  return {models::make_model(name, 10, {.parameters = 2, .dropout = dropout}).value(), shapes(),
          Batches::make({.images = 64, .batch = 8, .seed = 3}).value()};
}

bool are_equal(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other) {
  if (one.size() != other.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (!one[i].equal(other[i])) return false;
  }
  return true;
}

TEST(Learner, GradientsAreAFunctionOfParametersAndStep) {
  Learner learner = make(ModelName::convnet);
  Learner same = make(ModelName::convnet);
  const Gradients first = learner.compute(0);
  EXPECT_NEAR(first.loss, std::log(10.0), 0.5);
  EXPECT_EQ(first.values.size(), 8U);
  const Gradients second = learner.compute(1);
  EXPECT_FALSE(are_equal(first.values, second.values));
  EXPECT_TRUE(are_equal(same.compute(1).values, second.values)) << "in whatever order";
  EXPECT_TRUE(are_equal(same.compute(0).values, first.values));
  EXPECT_FALSE(are_equal(make(ModelName::convnet, 7).compute(0).values, first.values)) << "other dropout masks";
}

TEST(Learner, AStepAlongTheGradientLowersTheLoss) {
  Learner learner = make(ModelName::convnet);
  const Gradients gradients = learner.compute(0);
  std::vector<at::Tensor> moved = copies_of(learner.model().parameters());
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i].sub_(gradients.values[i], 0.01);
  ASSERT_TRUE(learner.load_parameters(moved));
  EXPECT_LT(learner.compute(0).loss, gradients.loss);
}

TEST(Learner, MeasuringChangesNeitherParametersNorBuffers) {
  Learner learner = make(ModelName::resnet18);
  (void)learner.compute(0);
  const auto buffers = learner.copy_buffers();
  const auto parameters = copies_of(learner.model().parameters());
  EXPECT_EQ(learner.measure({.part = 0, .parts = 50}).images, 10);
  EXPECT_TRUE(are_equal(learner.copy_buffers(), buffers));
  EXPECT_TRUE(are_equal(copies_of(learner.model().parameters()), parameters));
  (void)learner.compute(1);
  EXPECT_FALSE(are_equal(learner.copy_buffers(), buffers)) << "a step moves the running statistics";
}

TEST(Learner, TensorsOfAnotherModelAreRefused) {
  Learner learner = make(ModelName::convnet);
  const auto before = copies_of(learner.model().parameters());
  std::vector<at::Tensor> values = before;
  values[0] = at::ones({2});
  EXPECT_EQ(learner.load_parameters(values).error().code(), Errc::bad_arguments);
  values = before;
  values.pop_back();
  EXPECT_EQ(learner.load_parameters(values).error().code(), Errc::bad_arguments);
  values = before;
  values[1] = values[1].to(at::kDouble);
  EXPECT_EQ(learner.load_parameters(values).error().code(), Errc::bad_arguments);
  EXPECT_TRUE(are_equal(copies_of(learner.model().parameters()), before));
  EXPECT_EQ(learner.load_buffers({at::ones({2})}).error().code(), Errc::bad_arguments);
}

}  // namespace
}  // namespace caftan::image_training::learner_test
