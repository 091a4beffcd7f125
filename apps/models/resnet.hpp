/// `ResNet`: ResNet-18 and ResNet-50 with torchvision's parameters and names, so that its weights fit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/image_model.hpp"
#include "models/layers.hpp"
#include "models/units.hpp"

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
  /// @param units  which of `unit_names` the model has: the other ones are made and dropped, so that a part has the
  ///               first parameters that it has in the whole model. Precondition: a range of those units
  ResNet(ResNetDepth depth, std::int64_t classes, const ModelSeeds& seeds, UnitRange units = {});
  /// Runs the units that the model has. @param images  what the first of them takes
  at::Tensor forward(const at::Tensor& images, std::uint64_t draw) override;

  /// Returns the channels that the first unit takes; 3 also where it takes grey images.
  std::int64_t channels() const noexcept { return channels_; }

  /// Returns "conv1", "layer1.0", "layer1.1", ..., "fc": the pieces between which the model can be cut. conv1 has bn1
  /// and the pooling behind it, fc the pooling before it.
  static std::vector<std::string> unit_names(ResNetDepth depth);

 private:
  std::shared_ptr<Conv2d> conv1_;  // null: not of this part
  std::shared_ptr<BatchNorm2d> bn1_;
  std::vector<std::shared_ptr<ResidualBlock>> blocks_;
  std::shared_ptr<Linear> fc_;  // null: not of this part
  std::int64_t channels_ = 3;
};

}  // namespace caftan::models
