/// `AveragedModel`: the model at the server, which makes a step of the mean of several gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "batch_parameter_server/config.hpp"
#include "caftan/base/result.hpp"
#include "caftan/optim/local_optimizer.hpp"
#include "models/image_model.hpp"

namespace caftan::batch_parameter_server {

/// Threads: one at a time.
class AveragedModel {
 public:
  /// Errors: those of make_model and LocalOptimizer::make.
  static Result<AveragedModel> make(models::ModelName name, std::int64_t classes, std::uint64_t seed,
                                    const image_training::OptimizerConfig& optimizer);

  /// Checks that gradients have the shapes of the parameters. Errors: bad_arguments.
  Result<void> check(const std::vector<at::Tensor>& gradients) const;

  /// Makes one step of the mean: the sum in the order given, divided by how many there are.
  /// @param gradients  one at least, each checked
  /// Errors: those of nn::gradient_mean and LocalOptimizer::step.
  Result<void> step(const std::vector<const std::vector<at::Tensor>*>& gradients);

  const models::ImageModel& model() const noexcept { return *model_; }
  /// Returns copies that no later step changes.
  std::vector<at::Tensor> copy_parameters() const;
  std::vector<at::Tensor> copy_buffers() const;
  /// Errors: bad_arguments (of another model; nothing has changed then).
  Result<void> load_buffers(const std::vector<at::Tensor>& values);

  /// Returns the state of the optimizer. Errors: limit_exceeded.
  Result<wire::Bytes> save_optimizer() const { return optimizer_.save(); }
  /// Takes over parameters, buffers and the state of an optimizer; learning rate and momentum stay. Errors:
  /// bad_arguments (of another model), malformed_payload, protocol_mismatch.
  Result<void> resume(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& buffers,
                      wire::ByteView optimizer);

 private:
  AveragedModel(std::shared_ptr<models::ImageModel> model, optim::LocalOptimizer optimizer);

  std::shared_ptr<models::ImageModel> model_;
  std::vector<at::Tensor> parameters_;  // of the model
  optim::LocalOptimizer optimizer_;
};

}  // namespace caftan::batch_parameter_server
