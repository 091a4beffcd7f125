#include "ps_bench/dummy_model.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding_bag.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>

#include <cmath>

#include "caftan/base/keyed_random.hpp"
#include "caftan/nn/fill_normal.hpp"
#include "caftan/nn/fill_uniform.hpp"
#include "ps_bench/shapes.hpp"

namespace caftan::ps_bench {
namespace {

constexpr std::int64_t kMean = 1;  // the mode of embedding_bag

}  // namespace

DummyModel::DummyModel(const ModelConfig& config, std::uint64_t seed) : sparse_(config.sparse) {
  const double bound = 1 / std::sqrt(static_cast<double>(config.embedding_dim));
  for (const ParameterShape& shape : shapes_of(config)) {
    at::Tensor parameter = at::empty(shape.sizes, at::kFloat);
    const base::RandomKey key{.seed = seed, .context = parameters_.size()};
    if (parameters_.empty()) {
      nn::fill_normal(parameter, key, 0, 1);
    } else {
      nn::fill_uniform(parameter, key, -bound, bound);
    }
    parameters_.push_back(parameter.requires_grad_());
  }
}

at::Tensor DummyModel::forward(const at::Tensor& inputs) const {
  const at::Tensor offsets = at::arange(0, inputs.numel(), inputs.size(1), at::kLong);
  at::Tensor x = std::get<0>(at::embedding_bag(parameters_[0], inputs.flatten(), offsets,
                                               /*scale_grad_by_freq=*/false, kMean, sparse_));
  for (std::size_t i = 1; i + 1 < parameters_.size(); i += 2) x = at::linear(x, parameters_[i], parameters_[i + 1]);
  return at::softmax(x, 1);
}

at::Tensor loss_of(const at::Tensor& outputs, const at::Tensor& targets) {
  return at::cross_entropy_loss(outputs, targets);
}

}  // namespace caftan::ps_bench
