/// The messages between the server and its trainers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/tensor/payload.hpp"
#include "image_data/image_set.hpp"
#include "image_training/trainer_facts.hpp"
#include "models/model_name.hpp"

namespace caftan::batch_parameter_server {

/// Which images a trainer has, and what it makes of them.
struct DataFacts {
  image_training::TrainerFacts settings{};
  std::string source{};
  std::int64_t classes = 0;
  image_data::ImageShape shape{};
  std::uint32_t checksum = 0;  ///< DataSet::checksum

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& settings& source& classes& shape& checksum;
  }
};

/// The server's order to a trainer: train with me.
struct TrainingOrder {
  models::ModelName model = models::ModelName::convnet;
  std::uint32_t trainer = 0;          ///< its number
  std::uint32_t trainers = 1;         ///< that share the images
  std::int64_t rounds = 0;            ///< the version of the model at which the training ends
  std::uint64_t data_seed = 0;        ///< how images are dealt: the same for all trainers
  double learning_rate = 0;           ///< for messages
  std::vector<at::Tensor> buffers{};  ///< that the model begins with; empty: its own

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& model& trainer& trainers& rounds& data_seed& learning_rate& buffers;
  }
};

/// The gradient of one trainer for one round.
struct Contribution {
  std::uint32_t trainer = 0;
  std::int64_t version = 0;  ///< of the parameters at which it was computed
  double loss = 0;           ///< mean over the images, nats
  std::vector<at::Tensor> gradients{};
  std::vector<at::Tensor> buffers{};  ///< running statistics; the model takes those of the round's first trainer

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& trainer& version& loss& gradients& buffers;
  }
};

/// The model, as the server has it.
struct Update {
  std::int64_t version = 0;
  bool counted = false;  ///< whether the gradient that this replies to is part of the version
  std::vector<at::Tensor> parameters{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& version& counted& parameters;
  }
};

/// What a trainer has done.
struct TrainerReport {
  std::int64_t gradients = 0;
  std::int64_t late = 0;  ///< of them: dropped, since their rounds were closed

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& gradients& late;
  }
};

}  // namespace caftan::batch_parameter_server
