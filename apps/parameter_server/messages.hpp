/// The messages between the server and its trainers, beside those of the shared module.
#pragma once

#include <cstdint>
#include <string>

#include "image_data/image_set.hpp"
#include "image_training/trainer_facts.hpp"

namespace caftan::parameter_server {

/// The server's order to a trainer: this is your number, take your images.
struct OpenOrder {
  std::uint32_t trainer = 0;
  std::uint32_t trainers = 1;
  std::uint64_t data_seed = 0;  ///< how images are dealt: the same for all trainers

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& trainer& trainers& data_seed;
  }
};

/// Which images a trainer has, and what it makes of them.
struct DataFacts {
  image_training::TrainerFacts settings{};
  std::string source{};
  std::int64_t steps_per_epoch = 0;
  std::int64_t classes = 0;
  image_data::ImageShape shape{};
  std::uint32_t checksum = 0;  ///< DataSet::checksum

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& settings& source& steps_per_epoch& classes& shape& checksum;
  }
};

/// The server's order to a trainer: make the steps first..end-1.
struct TrainOrder {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t total = 0;    ///< steps of the whole training, for the line of progress
  double learning_rate = 0;  ///< for messages

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& first& end& total& learning_rate;
  }
};

/// What became of an order.
struct TrainReport {
  double loss_sum = 0;       ///< of the steps, nats
  std::int64_t steps = 0;    ///< that were applied
  std::int64_t refused = 0;  ///< gradients that were stale or late and were computed again, and refused leases

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& loss_sum& steps& refused;
  }
};

}  // namespace caftan::parameter_server
