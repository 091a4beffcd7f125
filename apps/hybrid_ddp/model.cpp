#include "hybrid_ddp/model.hpp"

#include <ATen/ops/embedding_bag.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include <cmath>
#include <stdexcept>

#include "caftan/nn/fill_uniform.hpp"

namespace caftan::hybrid_ddp {
namespace {

// RandomKey::context of the parameters.
enum : std::uint64_t { kEmbeddingKey, kWeightKey, kBiasKey };

at::Tensor make_parameter(at::IntArrayRef sizes, const base::RandomKey& key, double bound) {
  at::Tensor parameter = at::empty(sizes);
  nn::fill_uniform(parameter, key, -bound, bound);
  return parameter.requires_grad_(true);
}

}  // namespace

WordBags::WordBags(std::int64_t vocabulary, std::int64_t emb, bool sparse, std::uint64_t seed) : sparse_(sparse) {
  if (vocabulary < 1 || emb < 1) throw std::invalid_argument("an embedding has at least one word and one unit");
  weight_ = make_parameter({vocabulary, emb}, {.seed = seed, .context = kEmbeddingKey}, 0.1);
}

at::Tensor WordBags::forward(const at::Tensor& words, const at::Tensor& offsets) const {
  constexpr std::int64_t kSum = 0;
  return std::get<0>(at::embedding_bag(weight_, words, offsets, false, kSum, sparse_));
}

DenseLayer::DenseLayer(std::int64_t emb, std::int64_t classes, std::uint64_t seed) {
  const double bound = 1 / std::sqrt(static_cast<double>(emb));
  weight_ = make_parameter({classes, emb}, {.seed = seed, .context = kWeightKey}, bound);
  bias_ = make_parameter({classes}, {.seed = seed, .context = kBiasKey}, bound);
}

at::Tensor DenseLayer::forward(const at::Tensor& bags) const { return at::linear(bags, weight_, bias_); }

}  // namespace caftan::hybrid_ddp
