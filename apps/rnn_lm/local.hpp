/// The training of trainer.hpp in one process without calls: the baseline of the speed ratio, and the reference for the
/// roles, which must reach the same parameters bit for bit. Where the roles have a call between two parts, an identity
/// function stands here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "caftan/base/result.hpp"
#include "config.hpp"
#include "training.hpp"

namespace caftan::rnn_lm {

struct LocalSeeds {
  TrainerSeeds trainer;
  std::uint64_t embedding_dropout = 0;  ///< seed of dropout of the role that holds the embedding table
  std::uint64_t decoder_dropout = 0;
};

/// Threads: one at a time.
class LocalTraining {
 public:
  /// Makes one step of all parameters from their gradients, both in the order of `parameters()`.
  using Step = std::function<void(const std::vector<at::Tensor>& gradients)>;

  /// Errors: those of `Training::make`.
  static Result<LocalTraining> make(const TrainerConfig& config, const LocalSeeds& seeds);

  /// Takes one training step. @return its loss, nats per character
  Result<double> step(const Step& step);
  Result<Validation> validate() { return training_.validate(ends_); }

  /// Returns the parameters of the LSTM, of the embedding table and of the decoder, in this order.
  std::vector<at::Tensor> parameters() const;
  const Training& training() const noexcept { return training_; }

 private:
  LocalTraining(Training training, const LocalSeeds& seeds);

  Training training_;
  std::shared_ptr<const EmbeddingTable> embedding_;
  std::shared_ptr<const Decoder> decoder_;
  Ends ends_;
};

}  // namespace caftan::rnn_lm
