/// The messages between master, servers and trainers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/tensor/payload.hpp"
#include "ps_bench/config.hpp"
#include "ps_bench/data.hpp"
#include "ps_bench/shapes.hpp"
#include "ps_bench/statistics.hpp"

namespace caftan::ps_bench {

/// What all workers of a benchmark have to agree on.
struct Plan {
  Rule rule = Rule::average_batch;
  Layout layout = Layout::groups;
  std::uint32_t servers = 1;
  std::uint32_t trainers = 1;
  double lr = 0;
  std::int64_t bucket = 1;  ///< bytes
  ModelConfig model{};
  std::uint64_t seed = 0;  ///< of the model's first parameters

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& rule& layout& servers& trainers& lr& bucket& model& seed;
  }
};

/// The master's order to a trainer: this is your number, these are your batches.
struct TrainerOrder {
  Plan plan{};
  std::uint32_t trainer = 0;
  std::vector<Samples> batches{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& plan& trainer& batches;
  }
};

/// The gradients that a trainer has of one bucket.
struct Contribution {
  std::uint32_t trainer = 0;
  std::int64_t batch = 0;  ///< counted from 0 in each call of Trainer::train
  std::uint32_t bucket = 0;
  std::vector<at::Tensor> gradients{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& trainer& batch& bucket& gradients;
  }
};

/// What a trainer has done.
struct TrainerReport {
  std::string worker{};
  Times times{};
  std::int64_t batches = 0;
  double first_loss = 0;       ///< of the first batch, nats
  double last_loss = 0;        ///< of the last batch
  std::uint64_t checksum = 0;  ///< of the parameters at the end

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& worker& times& batches& first_loss& last_loss& checksum;
  }
};

/// What a server has measured.
struct ServerReport {
  std::string worker{};
  Times times{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& worker& times;
  }
};

}  // namespace caftan::ps_bench
