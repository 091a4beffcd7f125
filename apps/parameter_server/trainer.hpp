/// The role type "parameter_server.trainer": has images, and trains the model that the server shares: forward and
/// backward passes go through the server in an autograd context for each step. The server says how many steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/result.hpp"
#include "caftan/nn/shared_module.hpp"
#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"
#include "image_training/config.hpp"
#include "image_training/image_tensors.hpp"
#include "parameter_server/messages.hpp"
#include "parameter_server/served_model.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::parameter_server {

class Trainer {
 public:
  using Config = image_training::TrainerConfig;

  /// Returns what is wrong with the images on this machine.
  static std::vector<app::MissingRequirement> requirements(const Config& config);

  Trainer(RoleContext& context, Config config);

  /// Reads the images and takes this trainer's part of them. Errors: those of read_data and Batches::make.
  Result<DataFacts> open(OpenOrder order);

  /// Becomes a trainer of the model. Errors: those of SharedHandle::try_join.
  Result<void> join(nn::SharedModule<ServedModel> model);

  /// Makes steps. A gradient that is refused, since it is too old or its round is over, is computed again.
  /// Errors: bad_arguments (not opened or joined), invalid_config (it diverged), cancelled (the run stops); those of
  ///         calls, backward passes and steps.
  Result<TrainReport> train(TrainOrder order);

  /// Lets the model at the server classify a part of the test images, in evaluation mode.
  /// Errors: bad_arguments (not opened or joined, no such part); those of calls.
  Result<image_training::Accuracy> measure(image_training::TestPart part);

  /// Ends this trainer: no round waits for it any more.
  void leave();

 private:
  /// What one attempt to make a step came to.
  struct Attempt {
    double loss = 0;
    std::uint64_t staleness = 0;
    bool refused = false;
  };

  Result<Attempt> attempt(const image_training::LabelledImages& taken, std::int64_t step, double learning_rate);
  /// Waits for a result, however long it takes, and until the run stops.
  template <class T>
  Result<T> wait(Future<T> future) const;

  RoleContext& context_;
  Config config_;
  OpenOrder order_{};
  std::optional<image_data::DataSet> data_{};
  std::optional<image_data::Batches> batches_{};
  nn::SharedModule<ServedModel> model_{};
};

}  // namespace caftan::parameter_server
