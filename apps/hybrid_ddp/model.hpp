/// The two parts of the model: the embedding of words, which lives on a server, and the dense layer, which each trainer
/// has. Both are modules as `add_module` and `Replicated` take them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "caftan/nn/named_tensor.hpp"

namespace caftan::hybrid_ddp {

/// Source: torch.nn.EmbeddingBag with mode "sum". Difference: weights uniform in +-0.1, from a seed: words that are
/// never learned from count little then.
class WordBags {
 public:
  /// @param sparse  whether the gradient has only the rows of the words of a batch
  /// Errors (thrown): std::invalid_argument (a size that is not positive).
  WordBags(std::int64_t vocabulary, std::int64_t emb, bool sparse, std::uint64_t seed);

  /// @param words    [N], int64, each below the vocabulary's size
  /// @param offsets  [B], int64, where each bag begins, ascending from 0
  /// @return [B, emb], float32: the sum of the embeddings of each bag's words
  at::Tensor forward(const at::Tensor& words, const at::Tensor& offsets) const;
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight_}}; }

 private:
  at::Tensor weight_;
  bool sparse_;
};

/// Source: torch.nn.Linear. Difference: its parameters come from a seed.
class DenseLayer {
 public:
  DenseLayer(std::int64_t emb, std::int64_t classes, std::uint64_t seed);

  /// @param bags  [B, emb] @return logits [B, classes]
  at::Tensor forward(const at::Tensor& bags) const;
  std::vector<nn::NamedTensor> named_parameters() const { return {{"weight", weight_}, {"bias", bias_}}; }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace caftan::hybrid_ddp
