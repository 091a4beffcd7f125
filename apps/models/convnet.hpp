/// `ConvNet`: the model of PyTorch's parameter server tutorial and MNIST example.
#pragma once

#include <memory>

#include "caftan/nn/dropout.hpp"
#include "models/image_model.hpp"
#include "models/layers.hpp"

namespace caftan::models {

/// Two convolutions and two linear layers for grey images of 28x28 pixels: 1,199,882 parameters with ten classes, under
/// the names conv1, conv2, fc1, fc2.
/// Source: Net of pytorch/examples, mnist/main.py. Differences: dropout masks are a function of a key; logits are
/// returned, not their log-softmax.
class ConvNet final : public ImageModel {
 public:
  ConvNet(std::int64_t classes, const ModelSeeds& seeds);
  at::Tensor forward(const at::Tensor& images, std::uint64_t draw) override;

 private:
  ConvNet(std::int64_t classes, const ModelSeeds& seeds, Keys keys);

  std::shared_ptr<Conv2d> conv1_;
  std::shared_ptr<Conv2d> conv2_;
  std::shared_ptr<Linear> fc1_;
  std::shared_ptr<Linear> fc2_;
  nn::Dropout channels_;  // drops whole channels
  nn::Dropout units_;
};

}  // namespace caftan::models
