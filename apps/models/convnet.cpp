#include "models/convnet.hpp"

#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>

namespace caftan::models {
namespace {

constexpr std::int64_t kFlat = 64 * 12 * 12;  // after two 3x3 convolutions of 28x28 and pooling by 2

}  // namespace

ConvNet::ConvNet(std::int64_t classes, const ModelSeeds& seeds) : ConvNet(classes, seeds, Keys(seeds.parameters)) {}

ConvNet::ConvNet(std::int64_t classes, const ModelSeeds& seeds, Keys keys)
    : conv1_(register_module(
          "conv1", std::make_shared<Conv2d>(ConvShape{.in = 1, .out = 32, .kernel = 3}, ConvStart::plain, keys))),
      conv2_(register_module(
          "conv2", std::make_shared<Conv2d>(ConvShape{.in = 32, .out = 64, .kernel = 3}, ConvStart::plain, keys))),
      fc1_(register_module("fc1", std::make_shared<Linear>(kFlat, 128, keys))),
      fc2_(register_module("fc2", std::make_shared<Linear>(128, classes, keys))),
      channels_(nn::Dropout::make(0.25, seeds.dropout).value()),
      units_(nn::Dropout::make(0.5, seeds.dropout).value()) {}

at::Tensor ConvNet::forward(const at::Tensor& images, std::uint64_t draw) {
  at::Tensor x = at::relu(conv1_->forward(images));
  x = at::max_pool2d(at::relu(conv2_->forward(x)), {2, 2});
  // One element for each channel of each image: as torch's Dropout2d.
  if (is_training()) x = x * channels_.forward(at::ones({x.size(0), x.size(1), 1, 1}), draw, 0);
  x = at::relu(fc1_->forward(x.flatten(1)));
  if (is_training()) x = units_.forward(x, draw, 1);
  return fc2_->forward(x);
}

}  // namespace caftan::models
