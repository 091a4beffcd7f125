/// The parts of the model: EmbeddingTable, Lstm and Decoder, each small enough to live alone on a worker. Parameters
/// come from a seed and dropout masks from keys, so that it makes no difference where a part lives.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/nn/dropout.hpp"

namespace caftan::rnn_lm {

/// For what a forward is computed (a training step, a validation). It travels with each call, so that a validation
/// never changes the results of training steps.
struct Mode {
  bool train = false;      ///< dropout is active
  std::uint64_t step = 0;  ///< ordinal of the training step; key of the dropout masks

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& train& step;
  }
};

/// Sizes of the model and the randomness that all parts share.
struct ModelShape {
  std::int64_t vocabulary = 0;
  std::int64_t emb = 0;
  std::int64_t hid = 0;
  std::int64_t layers = 0;
  double dropout = 0;
  std::uint64_t parameter_seed = 0;

  /// Errors: bad_arguments (a size outside 1..2^24, or a dropout outside 0..<1): a shape may come from another worker.
  Result<void> check() const;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& vocabulary& emb& hid& layers& dropout& parameter_seed;
  }
};

// Threads of all parts: one at a time. Precondition of all: a shape that passed its check.
// @param dropout_seed  of the role that the part belongs to

/// Source: EmbeddingTable of PyTorch's RPC tutorial: a table, then dropout. Difference: weights of variance 1, uniform
/// in +-sqrt(3), as torch.nn.Embedding has them; the tutorial's +-0.1 learns visibly slower.
class EmbeddingTable {
 public:
  EmbeddingTable(const ModelShape& shape, std::uint64_t dropout_seed);
  /// @param characters  [T, B], int64, each below the vocabulary's size
  /// @return [T, B, emb], float32
  at::Tensor forward(const at::Tensor& characters, const Mode& mode) const;
  /// Returns weight [vocabulary, emb].
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }

 private:
  std::vector<at::Tensor> parameters_;
  nn::Dropout dropout_;
};

/// Source: the Decoder of PyTorch's RPC tutorial: dropout, then a linear layer of weights uniform in +-0.1 and bias 0.
class Decoder {
 public:
  Decoder(const ModelShape& shape, std::uint64_t dropout_seed);
  /// @param hidden  [T, B, hid], float32
  /// @return logits [T, B, vocabulary], float32
  at::Tensor forward(const at::Tensor& hidden, const Mode& mode) const;
  /// Returns weight [vocabulary, hid], bias [vocabulary].
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }

 private:
  std::vector<at::Tensor> parameters_;
  nn::Dropout dropout_;
};

/// What an LSTM carries from one window to the next.
struct LstmState {
  std::vector<at::Tensor> hidden;  ///< one per layer, [1, B, hid]
  std::vector<at::Tensor> cell;    ///< likewise
};

/// Source: torch.nn.LSTM with its default initialisation (uniform in +-1/sqrt(hid)) and keyed dropout between layers.
class Lstm {
 public:
  Lstm(const ModelShape& shape, std::uint64_t dropout_seed);
  /// Returns the state before the first character. @param rows  B
  LstmState zero_state(std::int64_t rows) const;
  /// @param input  [T, B, emb], float32
  /// @param state  advanced over the window and detached from its graph
  /// @return [T, B, hid], float32
  at::Tensor forward(const at::Tensor& input, LstmState& state, const Mode& mode) const;
  /// Returns per layer: weights [4 hid, in], [4 hid, hid], biases [4 hid], [4 hid].
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }

 private:
  std::int64_t hid_;
  std::int64_t layers_;
  std::vector<at::Tensor> parameters_;
  nn::Dropout dropout_;
};

/// Copies values into parameters, bumping their versions.
/// Errors: bad_arguments (another number, shape or dtype; nothing has changed then).
Result<void> load_parameters(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& values);

}  // namespace caftan::rnn_lm
