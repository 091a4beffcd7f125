/// The messages between the master and its trainers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/wire/bytes.hpp"
#include "hybrid_ddp/config.hpp"

namespace caftan::hybrid_ddp {

/// What a trainer has read.
struct TextFacts {
  std::string source{};
  std::uint32_t checksum = 0;
  std::int64_t words = 0, per_class = 0, batch = 0;
  std::int64_t vocabulary = 0;
  std::int64_t classes = 0;
  std::int64_t train = 0, test = 0;  ///< passages
  double majority = 0;               ///< share of the largest class

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& source& checksum& words& per_class& batch& vocabulary& classes& train& test& majority;
  }
};

/// The master's order to a trainer: this is your rank, make your replica.
struct JoinOrder {
  std::vector<std::string> members{};  ///< the trainers' workers, by rank
  std::uint32_t rank = 0;
  BackendName backend = BackendName::caftan;
  std::uint64_t bucket = 1;  ///< bytes
  std::int64_t emb = 1;
  std::uint64_t parameter_seed = 0;
  std::uint64_t data_seed = 0;
  OptimizerConfig::Name optimizer = OptimizerConfig::Name::adagrad;
  double lr = 0;
  bool ordered = false;  ///< trainers step the embedding in the order of their ranks
  std::int64_t check_every = 1;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& members& rank& backend& bucket& emb& parameter_seed& data_seed& optimizer& lr& ordered& check_every;
  }
};

/// The master's order: make the steps first..end-1.
struct TrainOrder {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t total = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& first& end& total;
  }
};

/// What a trainer has done of a TrainOrder; or all trainers together, with the seconds of the slowest.
struct TrainReport {
  double loss_sum = 0;
  std::int64_t steps = 0;
  double seconds = 0;
  std::uint64_t hash = 0;  ///< of the replica at the end

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& loss_sum& steps& seconds& hash;
  }
};

/// What a trainer has for a checkpoint.
struct TrainerState {
  std::vector<at::Tensor> dense{};
  wire::Bytes optimizer{};  ///< its state at all owners

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& dense& optimizer;
  }
};

/// The passages that were classified.
struct Accuracy {
  std::int64_t right = 0;
  std::int64_t passages = 0;

  double share() const noexcept { return static_cast<double>(right) / static_cast<double>(passages); }
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& right& passages;
  }
};

}  // namespace caftan::hybrid_ddp
