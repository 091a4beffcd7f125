// The models have the parameters of PyTorch's, under the same names, from a seed alone.
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

#include "caftan/nn/fill_normal.hpp"
#include "models/image_model.hpp"
#include "models/mlp.hpp"
#include "models/resnet.hpp"

namespace caftan::models::models_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr ModelSeeds kSeeds{.parameters = 3, .dropout = 4};

std::shared_ptr<ImageModel> make(ModelName name, std::int64_t classes = 1000, const ModelSeeds& seeds = kSeeds) {
  return make_model(name, classes, seeds).value();
}

std::vector<std::string> parameter_names(const torch::nn::Module& model) { return model.named_parameters().keys(); }

at::Tensor noise(at::IntArrayRef sizes, std::uint64_t seed = 1) {
  at::Tensor tensor = at::ones(sizes);
  nn::fill_normal(tensor, {.seed = seed}, 0, 1);
  return tensor;
}

/// Returns what torchvision's named_parameters() has, in its order, of a ResNet with so many blocks in its four layers.
std::vector<std::string> torchvision_names(const std::vector<int>& blocks, int convolutions) {
  std::vector<std::string> names{"conv1.weight", "bn1.weight", "bn1.bias"};
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    for (int block = 0; block < blocks[layer]; ++block) {
      const std::string prefix = "layer" + std::to_string(layer + 1) + "." + std::to_string(block) + ".";
      for (int i = 1; i <= convolutions; ++i) {
        names.push_back(prefix + "conv" + std::to_string(i) + ".weight");
        names.push_back(prefix + "bn" + std::to_string(i) + ".weight");
        names.push_back(prefix + "bn" + std::to_string(i) + ".bias");
      }
      // The first block changes the number of channels, but in the first layer of a net without bottlenecks.
      if (block > 0 || (layer == 0 && convolutions == 2)) continue;
      for (const char* const part : {"downsample.0.weight", "downsample.1.weight", "downsample.1.bias"}) {
        names.push_back(prefix + part);
      }
    }
  }
  names.insert(names.end(), {"fc.weight", "fc.bias"});
  return names;
}

TEST(ConvNet, HasTheParametersOfPyTorchsExample) {
  const auto net = make(ModelName::convnet, 10);
  EXPECT_EQ(count_parameters(*net), 1199882);
  EXPECT_THAT(parameter_names(*net), ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                                 "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_EQ(net->named_parameters()["fc1.weight"].sizes(), at::IntArrayRef({128, 9216}));
  EXPECT_TRUE(net->buffers().empty());
}

TEST(ResNet, EighteenHasTheParametersOfTorchvision) {
  const auto net = make(ModelName::resnet18);
  EXPECT_EQ(count_parameters(*net), 11689512);
  EXPECT_THAT(parameter_names(*net), ElementsAreArray(torchvision_names({2, 2, 2, 2}, 2)));
  EXPECT_EQ(net->named_parameters()["layer2.0.downsample.0.weight"].sizes(), at::IntArrayRef({128, 64, 1, 1}));
  EXPECT_EQ(net->buffers().size(), 60U);  // three of each of 20 norms
}

TEST(ResNet, FiftyHasTheParametersOfTorchvision) {
  const auto net = make(ModelName::resnet50);
  EXPECT_EQ(count_parameters(*net), 25557032);
  EXPECT_THAT(parameter_names(*net), ElementsAreArray(torchvision_names({3, 4, 6, 3}, 3)));
  const auto parameters = net->named_parameters();
  EXPECT_EQ(parameters.size(), 161U);
  EXPECT_EQ(parameters["conv1.weight"].sizes(), at::IntArrayRef({64, 3, 7, 7}));
  EXPECT_EQ(parameters["layer4.2.conv3.weight"].sizes(), at::IntArrayRef({2048, 512, 1, 1}));
  const auto buffers = net->named_buffers();
  EXPECT_EQ(buffers.size(), 159U);  // three of each of 53 norms
  EXPECT_TRUE(buffers.contains("layer3.5.bn2.running_mean"));
  EXPECT_TRUE(buffers.contains("bn1.running_var"));
  EXPECT_TRUE(buffers.contains("layer1.0.downsample.1.num_batches_tracked"));
}

TEST(ResNet, FiftyWithThirtyClassesIsThatOfTheBatchTutorial) {
  EXPECT_EQ(count_parameters(*make(ModelName::resnet50, 30)), 23569502);
}

TEST(Models, ParametersAreAFunctionOfTheSeed) {
  for (const ModelName name : {ModelName::convnet, ModelName::resnet18}) {
    const auto one = make(name, 10)->parameters();
    const auto same = make(name, 10)->parameters();
    const auto other = make(name, 10, {.parameters = 5})->parameters();
    ASSERT_EQ(one.size(), same.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_TRUE(one[i].equal(same[i])) << i;
      EXPECT_TRUE(one[i].requires_grad()) << i;
    }
    EXPECT_FALSE(one[0].equal(other[0]));
  }
}

TEST(Models, ParametersBeginAsInPyTorch) {
  const auto net = make(ModelName::resnet18)->named_parameters();
  const at::Tensor conv = net["layer3.1.conv2.weight"].detach();
  EXPECT_NEAR(conv.mean().item<double>(), 0, 1e-3);
  EXPECT_NEAR(conv.std().item<double>(), std::sqrt(2.0 / (256 * 9)), 2e-4);
  EXPECT_TRUE(net["layer3.1.bn2.weight"].equal(at::ones({256})));
  EXPECT_TRUE(net["layer3.1.bn2.bias"].equal(at::zeros({256})));
  const auto small = make(ModelName::convnet, 10)->named_parameters();
  const at::Tensor fc = small["fc1.weight"].detach();
  const double bound = 1 / std::sqrt(9216.0);
  EXPECT_LE(fc.abs().max().item<double>(), bound);
  EXPECT_NEAR(fc.std().item<double>(), bound / std::sqrt(3.0), 1e-5);
  EXPECT_LE(small["conv2.bias"].detach().abs().max().item<double>(), 1 / std::sqrt(32.0 * 9));
  // Each parameter has numbers of its own.
  EXPECT_FALSE(net["layer3.1.conv1.weight"].equal(net["layer3.1.conv2.weight"]));
}

TEST(ConvNet, DropoutIsAFunctionOfTheSeedAndTheDraw) {
  const auto net = make(ModelName::convnet, 10);
  const auto same = make(ModelName::convnet, 10);
  const auto other = make(ModelName::convnet, 10, {.parameters = kSeeds.parameters, .dropout = 9});
  const at::Tensor images = noise({3, 1, 28, 28});
  const at::Tensor out = net->forward(images, 5);
  EXPECT_EQ(out.sizes(), at::IntArrayRef({3, 10}));
  EXPECT_TRUE(out.equal(same->forward(images, 5)));
  EXPECT_FALSE(out.equal(net->forward(images, 6)));
  EXPECT_FALSE(out.equal(other->forward(images, 5)));
  for (const auto& model : {net, other}) model->eval();
  EXPECT_TRUE(net->forward(images, 5).equal(net->forward(images, 6)));
  EXPECT_TRUE(net->forward(images, 5).equal(other->forward(images, 5)));
}

TEST(ResNet, TakesImagesOfAnySizeAndGreyOnes) {
  const auto net = make(ModelName::resnet18, 7);
  net->eval();
  const c10::NoGradGuard no_grad;
  EXPECT_EQ(net->forward(noise({2, 3, 64, 64}), 0).sizes(), at::IntArrayRef({2, 7}));
  const at::Tensor grey = noise({2, 1, 28, 28});
  EXPECT_TRUE(net->forward(grey, 0).equal(net->forward(grey.expand({-1, 3, -1, -1}).contiguous(), 0)));
}

TEST(ResNet, RunningStatisticsMoveInTrainingModeOnly) {
  const auto net = make(ModelName::resnet18, 7);
  const auto mean = [&net] { return net->named_buffers()["bn1.running_mean"].clone(); };
  const at::Tensor before = mean();
  const c10::NoGradGuard no_grad;
  net->forward(noise({4, 3, 32, 32}), 0);
  const at::Tensor after = mean();
  EXPECT_FALSE(before.equal(after));
  EXPECT_EQ(net->named_buffers()["bn1.num_batches_tracked"].item<std::int64_t>(), 1);
  net->eval();
  net->forward(noise({4, 3, 32, 32}), 0);
  EXPECT_TRUE(after.equal(mean()));
  EXPECT_EQ(net->named_buffers()["bn1.num_batches_tracked"].item<std::int64_t>(), 1);
}

TEST(Models, EachParameterHasAGradient) {
  for (const ModelName name : {ModelName::convnet, ModelName::resnet18, ModelName::resnet50}) {
    const auto net = make(name, 10);
    const auto parameters = net->parameters();
    const at::Tensor images =
        noise(name == ModelName::convnet ? at::IntArrayRef({4, 1, 28, 28}) : at::IntArrayRef({4, 3, 32, 32}));
    const at::Tensor loss = at::cross_entropy_loss(net->forward(images, 0), at::zeros({4}, at::kLong));
    const auto gradients = torch::autograd::grad({loss}, parameters);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_GT(gradients[i].abs().max().item<double>(), 0) << to_string(name) << ' ' << parameter_names(*net)[i];
    }
  }
}

TEST(ResNet, PartsHaveTheParametersAndResultsOfTheWhole) {
  for (const ResNetDepth depth : {ResNetDepth::eighteen, ResNetDepth::fifty}) {
    ResNet whole(depth, 10, kSeeds);
    const std::size_t units = ResNet::unit_names(depth).size();
    ResNet first(depth, 10, kSeeds, {0, 6});
    ResNet second(depth, 10, kSeeds, {6, units});
    const auto names = parameter_names(whole);
    auto of_parts = parameter_names(first);
    for (const std::string& name : parameter_names(second)) of_parts.push_back(name);
    EXPECT_EQ(of_parts, names);
    for (const ResNet* const part : {&first, &second}) {
      for (const auto& item : part->named_parameters()) {
        EXPECT_TRUE(item.value().equal(whole.named_parameters()[item.key()])) << item.key();
      }
    }
    const at::Tensor images = noise({2, 1, 32, 32});
    EXPECT_TRUE(second.forward(first.forward(images, 0), 0).equal(whole.forward(images, 0)));
    EXPECT_EQ(first.channels(), 3);
    EXPECT_EQ(second.channels(), first.forward(images, 0).size(1));
  }
}

TEST(ResNet, FiftyCutAsInTheTutorialHasItsNumbersOfParameters) {
  const auto names = ResNet::unit_names(ResNetDepth::fifty);
  EXPECT_EQ(names.size(), 18U);
  EXPECT_EQ(names[8], "layer3.0");
  EXPECT_EQ(count_parameters(ResNet(ResNetDepth::fifty, 1000, kSeeds, {0, 8})), 1444928);
  EXPECT_EQ(count_parameters(ResNet(ResNetDepth::fifty, 1000, kSeeds, {8, 18})), 24112104);
}

TEST(BatchNorm, ASecondForwardWithoutTrackingIsTheSameAndMovesNothing) {
  BatchNorm2d norm(3);
  const at::Tensor input = noise({4, 3, 5, 5});
  const at::Tensor first = norm.forward(input);
  const at::Tensor mean = norm.named_buffers()["running_mean"].clone();
  norm.track(false);
  EXPECT_TRUE(norm.forward(input).equal(first));
  EXPECT_TRUE(norm.named_buffers()["running_mean"].equal(mean));
  EXPECT_EQ(norm.named_buffers()["num_batches_tracked"].item<std::int64_t>(), 1);
  norm.track(true);
  norm.forward(input);
  EXPECT_EQ(norm.named_buffers()["num_batches_tracked"].item<std::int64_t>(), 2);
}

TEST(Mlp, PartsHaveTheParametersMasksAndResultsOfTheWhole) {
  const MlpShape shape{.sizes = {6, 9, 8, 4}, .dropout = 0.5};
  Mlp whole(shape, kSeeds);
  Mlp first(shape, kSeeds, {0, 2});
  Mlp second(shape, kSeeds, {2, 3});
  EXPECT_THAT(parameter_names(whole),
              ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
  EXPECT_THAT(parameter_names(second), ElementsAre("fc3.weight", "fc3.bias"));
  EXPECT_EQ(second.inputs(), 8);
  const at::Tensor images = noise({5, 1, 2, 3});
  const at::Tensor out = whole.forward(images, 7);
  EXPECT_EQ(out.sizes(), at::IntArrayRef({5, 4}));
  EXPECT_TRUE(second.forward(first.forward(images, 7), 7).equal(out));
  const at::Tensor rows = first.forward_rows(images.slice(0, 2, 5), 7, 2);
  EXPECT_TRUE(at::allclose(second.forward_rows(rows, 7, 2), out.slice(0, 2, 5), 1e-5, 1e-6)) << "masks of the batch";
  EXPECT_FALSE(whole.forward(images, 8).equal(out));
  whole.eval();
  EXPECT_TRUE(whole.forward(images, 8).equal(whole.forward(images, 7)));
}

TEST(Models, WhatIsNoModelIsRefused) {
  EXPECT_EQ(make_model(static_cast<ModelName>(7), 10, kSeeds).error().code(), Errc::bad_arguments);
  EXPECT_EQ(make_model(ModelName::convnet, 0, kSeeds).error().code(), Errc::bad_arguments);
  EXPECT_EQ(make_model(ModelName::convnet, 65537, kSeeds).error().code(), Errc::bad_arguments);
}

}  // namespace
}  // namespace caftan::models::models_test
