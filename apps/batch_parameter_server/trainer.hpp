/// The role type "batch_parameter_server.trainer": has images and a copy of the model, and computes gradients when the
/// server lets it train. It does not drive: the server does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batch_parameter_server/messages.hpp"
#include "caftan/app/role_type.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/rref.hpp"
#include "image_data/data_set.hpp"
#include "image_training/config.hpp"
#include "image_training/image_tensors.hpp"
#include "image_training/learner.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::batch_parameter_server {

class Server;

class Trainer {
 public:
  using Config = image_training::TrainerConfig;

  /// Returns what is wrong with the images on this machine.
  static std::vector<app::MissingRequirement> requirements(const Config& config);

  Trainer(RoleContext& context, Config config);

  /// Reads the images. Errors: those of read_data.
  Result<DataFacts> open();

  /// Computes gradients for the server until its model has had `order.rounds` rounds.
  /// Errors: bad_arguments (the images were not read), those of make_model and Batches::make; invalid_config (it
  ///         diverged); cancelled (the run stops); those of calls to the server.
  Result<TrainerReport> train(RRef<Server> server, TrainingOrder order);

  /// Classifies a part of the test images with these parameters and buffers, in evaluation mode. The training goes on
  /// as if it had not been asked. Errors: bad_arguments (no training has begun, tensors of another model, no such
  /// part).
  Result<image_training::Accuracy> evaluate(std::vector<at::Tensor> parameters, std::vector<at::Tensor> buffers,
                                            image_training::TestPart part);

 private:
  Result<void> prepare(const TrainingOrder& order);
  Result<Update> ask(const RRef<Server>& server, const Contribution& contribution) const;

  RoleContext& context_;
  Config config_;
  std::optional<image_data::DataSet> data_{};
  std::optional<image_training::Learner> learner_{};  ///< from `train` on
};

}  // namespace caftan::batch_parameter_server
