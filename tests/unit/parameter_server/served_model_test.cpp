// The model that the server shares is the one that the file names, and each trainer's steps drop other units.
#include "parameter_server/served_model.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace caftan::parameter_server::served_model_test {
namespace {

using models::ModelName;

TEST(ServedModel, HasTheTensorsOfTheModelUnderTheirNames) {
  ServedModel model(ModelName::resnet18, 10, 1, 2);
  EXPECT_EQ(model.named_parameters().size(), 62U);
  EXPECT_EQ(model.named_parameters().front().name, "conv1.weight");
  EXPECT_EQ(model.named_buffers().size(), 60U);
  const auto alone = models::make_model(ModelName::resnet18, 10, {.parameters = 1, .dropout = 2}).value();
  EXPECT_TRUE(model.named_parameters().back().tensor.equal(alone->named_parameters()["fc.bias"]));
}

TEST(ServedModel, ComputesAsTheModelDoesInBothModes) {
  ServedModel model(ModelName::convnet, 10, 1, 2);
  const auto alone = models::make_model(ModelName::convnet, 10, {.parameters = 1, .dropout = 2}).value();
  const at::Tensor images = at::ones({2, 1, 28, 28});
  model.train(true);
  EXPECT_TRUE(model.forward(images, 7).equal(alone->forward(images, 7)));
  EXPECT_FALSE(model.forward(images, 7).equal(model.forward(images, 8)));
  model.train(false);
  alone->eval();
  EXPECT_TRUE(model.forward(images, 7).equal(alone->forward(images, 8)));
}

TEST(ServedModel, WhatIsNoModelThrows) {
  EXPECT_THROW(ServedModel(ModelName::convnet, 0, 1, 2), std::invalid_argument);
  EXPECT_THROW(ServedModel(static_cast<ModelName>(9), 10, 1, 2), std::invalid_argument);
}

TEST(DrawOf, IsAnotherOneForEachStepOfEachTrainer) {
  std::set<std::uint64_t> draws;
  for (std::uint32_t trainer = 0; trainer < 5; ++trainer) {
    for (std::int64_t step = 0; step < 100; ++step) draws.insert(draw_of(trainer, step));
  }
  EXPECT_EQ(draws.size(), 500U);
}

}  // namespace
}  // namespace caftan::parameter_server::served_model_test
