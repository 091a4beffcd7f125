#include "models/mlp.hpp"

#include <ATen/ops/relu.h>

namespace caftan::models {

std::vector<std::string> Mlp::unit_names(std::size_t layers) {
  std::vector<std::string> names;
  for (std::size_t layer = 1; layer <= layers; ++layer) names.push_back("fc" + std::to_string(layer));
  return names;
}

Mlp::Mlp(const MlpShape& shape, const ModelSeeds& seeds, UnitRange units)
    : last_(shape.sizes.size() - 2), dropout_(nn::Dropout::make(shape.dropout, seeds.dropout).value()) {
  Keys keys(seeds.parameters);
  const std::vector<std::string> names = unit_names(last_ + 1);
  for (std::size_t layer = 0; layer <= last_; ++layer) {
    auto linear = std::make_shared<Linear>(shape.sizes[layer], shape.sizes[layer + 1], keys);
    if (layer == units.first) inputs_ = shape.sizes[layer];
    if (units.has(layer)) layers_.push_back({register_module(names[layer], std::move(linear)), layer});
  }
}

at::Tensor Mlp::forward_rows(const at::Tensor& input, std::uint64_t draw, std::int64_t first_row) {
  at::Tensor x = input.flatten(1);
  for (const Layer& layer : layers_) {
    x = layer.linear->forward(x);
    if (layer.number == last_) continue;
    x = at::relu(x);
    if (is_training()) x = dropout_.forward(x, draw, layer.number, static_cast<std::uint64_t>(first_row * x.size(1)));
  }
  return x;
}

}  // namespace caftan::models
