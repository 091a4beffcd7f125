/// `Learner`: a model on its trainer, with the trainer's images: gradients of a step, and accuracy. It makes no call.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "caftan/base/result.hpp"
#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"
#include "image_training/image_tensors.hpp"
#include "models/image_model.hpp"

namespace caftan::image_training {

struct Gradients {
  double loss = 0;                   ///< mean cross entropy of the step's images, nats
  std::vector<at::Tensor> values{};  ///< one for each parameter
};

/// Threads: one at a time.
class Learner {
 public:
  /// @param data  outlives the learner
  Learner(std::shared_ptr<models::ImageModel> model, const image_data::DataSet& data, image_data::Batches batches);

  const models::ImageModel& model() const noexcept { return *model_; }
  /// Copies values into the parameters of the model. Errors: bad_arguments (those of another model; nothing has changed
  /// then).
  Result<void> load_parameters(const std::vector<at::Tensor>& values);
  /// The same with its buffers.
  Result<void> load_buffers(const std::vector<at::Tensor>& values);
  /// Returns copies of the buffers.
  std::vector<at::Tensor> copy_buffers() const;

  /// Computes the gradients of a step's images at the parameters that the model has; running statistics move.
  /// @param step  from 0: decides which images, and the dropout masks
  Gradients compute(std::int64_t step);

  /// Measures with the parameters that the model has, in evaluation mode.
  Accuracy measure(const TestPart& part);

 private:
  std::shared_ptr<models::ImageModel> model_;
  const image_data::DataSet* data_;
  image_data::Batches batches_;
};

/// Copies values into tensors, bumping their versions. Errors: bad_arguments (another number, shape or dtype; nothing
/// has changed then).
Result<void> copy_into(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& values);

/// Returns copies that need no gradient.
std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors);

}  // namespace caftan::image_training
