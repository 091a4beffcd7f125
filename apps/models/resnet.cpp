#include "models/resnet.hpp"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include <array>

namespace caftan::models {
namespace {

constexpr std::int64_t kStem = 64;  // channels after the first convolution

/// A module that only holds others under a name: layer1, downsample.
class Group : public torch::nn::Module {};

std::array<int, 4> blocks_of(ResNetDepth depth) {
  return depth == ResNetDepth::eighteen ? std::array<int, 4>{2, 2, 2, 2} : std::array<int, 4>{3, 4, 6, 3};
}

}  // namespace

ResidualBlock::ResidualBlock(std::int64_t in, std::int64_t width, std::int64_t stride, bool is_bottleneck, Keys& keys) {
  const std::int64_t out = is_bottleneck ? 4 * width : width;
  if (is_bottleneck) {
    add({.in = in, .out = width, .kernel = 1}, keys);
    add({.in = width, .out = width, .kernel = 3, .stride = stride, .padding = 1}, keys);
    add({.in = width, .out = out, .kernel = 1}, keys);
  } else {
    add({.in = in, .out = width, .kernel = 3, .stride = stride, .padding = 1}, keys);
    add({.in = width, .out = width, .kernel = 3, .stride = 1, .padding = 1}, keys);
  }
  if (stride == 1 && in == out) return;
  const auto downsample = register_module("downsample", std::make_shared<Group>());
  const ConvShape shape{.in = in, .out = out, .kernel = 1, .stride = stride};
  shortcut_ = downsample->register_module("0", std::make_shared<Conv2d>(shape, ConvStart::residual, keys));
  shortcut_norm_ = downsample->register_module("1", std::make_shared<BatchNorm2d>(out));
}

void ResidualBlock::add(const ConvShape& shape, Keys& keys) {
  const std::string number = std::to_string(convolutions_.size() + 1);
  convolutions_.push_back(register_module("conv" + number, std::make_shared<Conv2d>(shape, ConvStart::residual, keys)));
  norms_.push_back(register_module("bn" + number, std::make_shared<BatchNorm2d>(shape.out)));
}

at::Tensor ResidualBlock::forward(const at::Tensor& input) {
  at::Tensor x = input;
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    x = norms_[i]->forward(convolutions_[i]->forward(x));
    if (i + 1 < convolutions_.size()) x = at::relu(x);
  }
  return at::relu(x + (shortcut_ ? shortcut_norm_->forward(shortcut_->forward(input)) : input));
}

std::vector<std::string> ResNet::unit_names(ResNetDepth depth) {
  std::vector<std::string> names{"conv1"};
  const std::array<int, 4> blocks = blocks_of(depth);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (int block = 0; block < blocks[i]; ++block) {
      names.push_back("layer" + std::to_string(i + 1) + "." + std::to_string(block));
    }
  }
  names.emplace_back("fc");
  return names;
}

ResNet::ResNet(ResNetDepth depth, std::int64_t classes, const ModelSeeds& seeds, UnitRange units) {
  Keys keys(seeds.parameters);
  const ConvShape stem{.in = 3, .out = kStem, .kernel = 7, .stride = 2, .padding = 3};
  std::size_t unit = 0;
  auto conv1 = std::make_shared<Conv2d>(stem, ConvStart::residual, keys);
  if (units.has(unit++)) {
    conv1_ = register_module("conv1", std::move(conv1));
    bn1_ = register_module("bn1", std::make_shared<BatchNorm2d>(kStem));
  }
  const bool is_bottleneck = depth == ResNetDepth::fifty;
  const std::array<int, 4> blocks = blocks_of(depth);
  std::int64_t in = kStem;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::shared_ptr<Group> group;
    const std::int64_t width = kStem << i;
    for (int number = 0; number < blocks[i]; ++number, ++unit) {
      const std::int64_t stride = number == 0 && i > 0 ? 2 : 1;
      auto block = std::make_shared<ResidualBlock>(in, width, stride, is_bottleneck, keys);
      if (unit == units.first) channels_ = in;
      in = is_bottleneck ? 4 * width : width;
      if (!units.has(unit)) continue;
      if (!group) group = register_module("layer" + std::to_string(i + 1), std::make_shared<Group>());
      blocks_.push_back(group->register_module(std::to_string(number), std::move(block)));
    }
  }
  if (unit == units.first) channels_ = in;
  if (units.has(unit)) fc_ = register_module("fc", std::make_shared<Linear>(in, classes, keys));
}

at::Tensor ResNet::forward(const at::Tensor& images, std::uint64_t /*draw*/) {
  at::Tensor x = images;
  if (conv1_) {
    if (x.size(1) == 1) x = x.expand({-1, 3, -1, -1});
    x = at::relu(bn1_->forward(conv1_->forward(x)));
    x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  }
  for (const auto& block : blocks_) x = block->forward(x);
  return fc_ ? fc_->forward(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1)) : x;
}

}  // namespace caftan::models
