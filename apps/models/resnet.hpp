/// `ResNet`: ResNet-18 and ResNet-50 with torchvision's parameters and names, so that its weights fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/image_model.hpp"
#include "models/layers.hpp"

namespace caftan::models {

enum class ResNetDepth { eighteen, fifty };

/// One block of a ResNet: convolutions beside a shortcut.
class ResidualBlock : public torch::nn::Module {
 public:
  /// @param in  channels that come in
  /// @param width  channels inside
  /// @param stride  of the block: 2 halves the image
  /// @param is_bottleneck  1x1, 3x3, 1x1 with four times `width` channels out; else two 3x3 with `width` channels out
  ResidualBlock(std::int64_t in, std::int64_t width, std::int64_t stride, bool is_bottleneck, Keys& keys);
  at::Tensor forward(const at::Tensor& input);

 private:
  void add(const ConvShape& shape, Keys& keys);

  std::vector<std::shared_ptr<Conv2d>> convolutions_;
  std::vector<std::shared_ptr<BatchNorm2d>> norms_;
  std::shared_ptr<Conv2d> shortcut_;  // null: the input itself
  std::shared_ptr<BatchNorm2d> shortcut_norm_;
};

/// With 1000 classes 11,689,512 or 25,557,032 parameters. Takes images of any size; of grey ones each of the three
/// colours gets a copy. Source: torchvision.models.resnet18 and resnet50 (the stride is that of the 3x3 convolution),
/// He et al. 2015, arXiv 1512.03385; the same first distribution of the parameters.
class ResNet final : public ImageModel {
 public:
  ResNet(ResNetDepth depth, std::int64_t classes, const ModelSeeds& seeds);
  at::Tensor forward(const at::Tensor& images, std::uint64_t draw) override;

 private:
  using Layer = std::vector<std::shared_ptr<ResidualBlock>>;

  std::shared_ptr<Conv2d> conv1_;
  std::shared_ptr<BatchNorm2d> bn1_;
  std::vector<Layer> layers_;
  std::shared_ptr<Linear> fc_;
};

}  // namespace caftan::models
