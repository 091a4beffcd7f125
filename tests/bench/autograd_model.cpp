#include "autograd_model.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace caftan::bench {

namespace {

constexpr std::int64_t kCharacters = 86;
constexpr std::int64_t kEmbedding = 32;
constexpr std::int64_t kHidden = 128;
constexpr std::int64_t kLength = 64;
constexpr std::int64_t kRows = 32;

/// Returns a parameter whose values differ from each other; which values does not matter for the time.
at::Tensor make_parameter(at::IntArrayRef sizes) {
  at::Tensor parameter = at::zeros(sizes);
  const at::Tensor count = at::arange(parameter.numel(), at::kFloat).view(sizes);
  return ((count * 0.7).sin() * 0.08).requires_grad_();
}

}  // namespace

RemotePart::RemotePart()
    : scale_{at::ones({1}).requires_grad_()},
      parameters_{make_parameter({kCharacters, kEmbedding}), make_parameter({kCharacters, kHidden}),
                  make_parameter({kCharacters})} {}

at::Tensor RemotePart::scale(const at::Tensor& x) const { return scale_[0] * x; }
at::Tensor RemotePart::embed(const at::Tensor& characters) const { return at::embedding(parameters_[0], characters); }
at::Tensor RemotePart::decode(const at::Tensor& hidden) const {
  return at::linear(hidden, parameters_[1], parameters_[2]);
}

Trainer::Trainer()
    : parameters_{make_parameter({4 * kHidden, kEmbedding}), make_parameter({4 * kHidden, kHidden}),
                  make_parameter({4 * kHidden}), make_parameter({4 * kHidden})},
      characters_((at::arange(kLength * kRows, at::kLong) * 31 % kCharacters).view({kLength, kRows})),
      targets_((at::arange(kLength * kRows, at::kLong) * 17 % kCharacters)),
      state_{at::zeros({1, kRows, kHidden}), at::zeros({1, kRows, kHidden})} {}

at::Tensor Trainer::forward(const at::Tensor& embedded) const {
  return std::get<0>(at::lstm(embedded, state_, parameters_, true, 1, 0.0, true, false, false));
}

at::Tensor Trainer::loss(const at::Tensor& logits) const {
  return at::cross_entropy_loss(logits.view({-1, kCharacters}), targets_);
}

}  // namespace caftan::bench
