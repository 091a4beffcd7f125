/// What both sides of the autograd benchmark compute: a scale, and the parts of a character model of rnn_lm's sizes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace caftan::bench {

/// The parts that the other worker holds.
class RemotePart {
 public:
  RemotePart();
  /// Returns x times a weight. @param x  any size, float32
  at::Tensor scale(const at::Tensor& x) const;
  /// @param characters  [T, B], int64  @return [T, B, 32], float32
  at::Tensor embed(const at::Tensor& characters) const;
  /// @param hidden  [T, B, 128], float32  @return logits [T, B, 86], float32
  at::Tensor decode(const at::Tensor& hidden) const;
  const std::vector<at::Tensor>& scale_parameters() const noexcept { return scale_; }
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }

 private:
  std::vector<at::Tensor> scale_;
  std::vector<at::Tensor> parameters_;
};

/// The part that the caller holds: an LSTM, its input and the expected output.
class Trainer {
 public:
  Trainer();
  /// @param embedded  as embed returns it  @return [T, B, 128]
  at::Tensor forward(const at::Tensor& embedded) const;
  at::Tensor loss(const at::Tensor& logits) const;
  const at::Tensor& characters() const noexcept { return characters_; }
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }

 private:
  std::vector<at::Tensor> parameters_;
  at::Tensor characters_;
  at::Tensor targets_;
  std::vector<at::Tensor> state_;
};

constexpr double kLearningRate = 1e-3;

}  // namespace caftan::bench
