#include "parts.hpp"

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <array>
#include <cmath>
#include <string>

#include "caftan/nn/fill_uniform.hpp"

namespace caftan::rnn_lm {
namespace {

// The keys of random numbers: RandomKey::context of a part's parameters, and the ordinal of each use of dropout within
// its role.
enum : std::uint64_t { kEmbeddingKey, kLstmKey, kDecoderKey };
enum : std::uint64_t { kEmbeddingDropout, kDecoderDropout, kLayerDropout };

at::Tensor make_parameter(at::IntArrayRef sizes, const base::RandomKey& key, double bound) {
  at::Tensor parameter = at::empty(sizes);
  nn::fill_uniform(parameter, key, -bound, bound);
  return parameter.requires_grad_(true);
}

nn::Dropout make_dropout(const ModelShape& shape, std::uint64_t seed) {
  return nn::Dropout::make(shape.dropout, seed).value();  // the shape passed its check
}

}  // namespace

Result<void> ModelShape::check() const {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  for (const std::int64_t size : {vocabulary, emb, hid, layers}) {
    if (size < 1 || size > kMost) return Error(Errc::bad_arguments, "a size of the model is " + std::to_string(size));
  }
  if (auto possible = nn::Dropout::make(dropout, 0); !possible) return possible.error();
  return {};
}

EmbeddingTable::EmbeddingTable(const ModelShape& shape, std::uint64_t dropout_seed)
    : parameters_{make_parameter({shape.vocabulary, shape.emb},
                                 {.seed = shape.parameter_seed, .context = kEmbeddingKey}, std::sqrt(3.0))},
      dropout_(make_dropout(shape, dropout_seed)) {}

at::Tensor EmbeddingTable::forward(const at::Tensor& characters, const Mode& mode) const {
  const at::Tensor embedded = at::embedding(parameters_[0], characters);
  return mode.train ? dropout_.forward(embedded, mode.step, kEmbeddingDropout) : embedded;
}

Decoder::Decoder(const ModelShape& shape, std::uint64_t dropout_seed)
    : parameters_{make_parameter({shape.vocabulary, shape.hid}, {.seed = shape.parameter_seed, .context = kDecoderKey},
                                 0.1),
                  at::zeros({shape.vocabulary}).requires_grad_(true)},
      dropout_(make_dropout(shape, dropout_seed)) {}

at::Tensor Decoder::forward(const at::Tensor& hidden, const Mode& mode) const {
  const at::Tensor kept = mode.train ? dropout_.forward(hidden, mode.step, kDecoderDropout) : hidden;
  return at::linear(kept, parameters_[0], parameters_[1]);
}

Lstm::Lstm(const ModelShape& shape, std::uint64_t dropout_seed)
    : hid_(shape.hid), layers_(shape.layers), dropout_(make_dropout(shape, dropout_seed)) {
  const double bound = 1 / std::sqrt(static_cast<double>(hid_));
  for (std::int64_t layer = 0; layer < layers_; ++layer) {
    const std::int64_t inputs = layer == 0 ? shape.emb : hid_;
    const std::array<std::vector<std::int64_t>, 4> sizes{
        {{4 * hid_, inputs}, {4 * hid_, hid_}, {4 * hid_}, {4 * hid_}}};
    for (const auto& size : sizes) {
      const base::RandomKey key{.seed = shape.parameter_seed, .context = kLstmKey, .call = parameters_.size()};
      parameters_.push_back(make_parameter(size, key, bound));
    }
  }
}

LstmState Lstm::zero_state(std::int64_t rows) const {
  LstmState state;
  for (std::int64_t layer = 0; layer < layers_; ++layer) {
    state.hidden.push_back(at::zeros({1, rows, hid_}));
    state.cell.push_back(at::zeros({1, rows, hid_}));
  }
  return state;
}

at::Tensor Lstm::forward(const at::Tensor& input, LstmState& state, const Mode& mode) const {
  at::Tensor output = input;
  // The layers run one by one, because torch's own dropout between layers would draw from the process-wide generator.
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers_); ++layer) {
    if (layer > 0 && mode.train) output = dropout_.forward(output, mode.step, kLayerDropout + layer);
    const std::array<at::Tensor, 2> before{state.hidden[layer], state.cell[layer]};
    const at::TensorList weights = at::TensorList(parameters_).slice(4 * layer, 4);
    auto [out, hidden, cell] = at::lstm(output, before, weights, true, 1, 0.0, mode.train, false, false);
    state.hidden[layer] = hidden.detach();
    state.cell[layer] = cell.detach();
    output = std::move(out);
  }
  return output;
}

Result<void> load_parameters(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& values) {
  bool fits = parameters.size() == values.size();
  for (std::size_t i = 0; fits && i < values.size(); ++i) {
    fits = values[i].defined() && values[i].scalar_type() == parameters[i].scalar_type() &&
           values[i].sizes() == parameters[i].sizes();
  }
  if (!fits) return Error(Errc::bad_arguments, "these are parameters of another model");
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values.size(); ++i) parameters[i].copy_(values[i]);
  return {};
}

}  // namespace caftan::rnn_lm
