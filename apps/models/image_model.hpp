/// `ImageModel`: a torch::nn::Module that classifies images. `make_model` makes the one that a file names.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "caftan/base/result.hpp"
#include "models/model_name.hpp"

namespace caftan::models {

/// The random numbers of a model: the same seeds give the same parameters and the same masks at every place.
struct ModelSeeds {
  std::uint64_t parameters = 0;
  std::uint64_t dropout = 0;  ///< of the trainer
};

/// Threads: one at a time. `train()` and `eval()` choose the mode, as in torch.
class ImageModel : public torch::nn::Module {
 public:
  /// @param images  [B, C, H, W], float32, normalised; models that take colours take grey images (C = 1) as well
  /// @param draw  ordinal of the training step: two with the same draw the same dropout masks; no matter in evaluation
  /// mode
  /// @return logits [B, classes], recorded by autograd
  /// Errors (thrown): torch's (images of a shape that the model does not take).
  virtual at::Tensor forward(const at::Tensor& images, std::uint64_t draw) = 0;
};

/// Returns a new model in training mode.
/// Errors: bad_arguments (no such model, or fewer than one class or more than 2^16: a name may come from another
///   worker).
Result<std::shared_ptr<ImageModel>> make_model(ModelName name, std::int64_t classes, const ModelSeeds& seeds);

/// Returns the number of elements of all parameters.
std::int64_t count_parameters(const torch::nn::Module& model);

}  // namespace caftan::models
