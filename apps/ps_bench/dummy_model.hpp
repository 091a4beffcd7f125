/// The benchmark's model, which learns nothing of use and costs what a model costs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "ps_bench/config.hpp"

namespace caftan::ps_bench {

/// The mean of a sample's rows of an embedding table, linear layers without anything between them, and a softmax.
/// Threads: one at a time.
/// Source: DummyModel of PyTorch's benchmarks/distributed/rpc/parameter_server.
class DummyModel {
 public:
  /// Two models of one seed are equal, bit for bit.
  DummyModel(const ModelConfig& config, std::uint64_t seed);

  /// @param inputs  [B, length], int64, each below num_embeddings
  /// @return [B, embedding_dim], each row with the sum 1
  at::Tensor forward(const at::Tensor& inputs) const;

  /// Returns the parameters in the order of shapes_of. They are leaves that need gradients.
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }

 private:
  bool sparse_;
  std::vector<at::Tensor> parameters_;
};

/// Returns the cross entropy of a model's outputs. @param targets  [B], int64 @return a scalar
at::Tensor loss_of(const at::Tensor& outputs, const at::Tensor& targets);

}  // namespace caftan::ps_bench
