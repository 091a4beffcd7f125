#include "actor_critic/model.hpp"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "caftan/rl/random.hpp"

namespace caftan::actor_critic {
namespace {

constexpr double kFirstLogDeviation = 0.0;

double draw_normal(rl::Pcg64& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

/// Returns [out, in] whose rows, or columns if these are fewer, are orthogonal and of length `gain`, by Gram and
/// Schmidt.
at::Tensor orthogonal(std::size_t out, std::size_t in, double gain, rl::Pcg64& random) {
  const std::size_t count = std::min(out, in);
  const std::size_t size = std::max(out, in);
  std::vector<std::vector<double>> vectors;
  while (vectors.size() < count) {
    std::vector<double> vector(size);
    for (double& value : vector) value = draw_normal(random);
    for (const auto& before : vectors) {
      double product = 0;
      for (std::size_t i = 0; i < size; ++i) product += before[i] * vector[i];
      for (std::size_t i = 0; i < size; ++i) vector[i] -= product * before[i];
    }
    double square = 0;
    for (const double value : vector) square += value * value;
    if (square < 1e-12) continue;  // nearly a combination of those before: another draw
    for (double& value : vector) value /= std::sqrt(square);
    vectors.push_back(std::move(vector));
  }
  at::Tensor weight = at::empty({static_cast<std::int64_t>(out), static_cast<std::int64_t>(in)}, at::kFloat);
  auto* const values = weight.mutable_data_ptr<float>();
  for (std::size_t row = 0; row < out; ++row) {
    for (std::size_t column = 0; column < in; ++column) {
      const double value = out <= in ? vectors[row][column] : vectors[column][row];
      values[row * in + column] = static_cast<float>(gain * value);
    }
  }
  return weight;
}

void append_network(const agents::PolicyShape& shape, std::size_t outputs, double last_gain, rl::Pcg64& random,
                    std::vector<at::Tensor>& to) {
  std::size_t in = shape.observation;
  for (std::size_t layer = 0; layer <= shape.layers; ++layer) {
    const bool is_last = layer == shape.layers;
    const std::size_t out = is_last ? outputs : shape.hidden;
    to.push_back(orthogonal(out, in, is_last ? last_gain : std::numbers::sqrt2, random).requires_grad_());
    to.push_back(at::zeros({static_cast<std::int64_t>(out)}, at::kFloat).requires_grad_());
    in = out;
  }
}

}  // namespace

Model::Model(const agents::PolicyShape& shape, std::uint64_t seed) : shape_(shape) {
  constexpr double kPolicyGain = 0.01;  // all actions are about equally probable at first
  rl::Pcg64 random(seed);
  append_network(shape, shape.outputs, kPolicyGain, random, parameters_);
  if (shape.continuous) {
    parameters_.push_back(
        at::full({static_cast<std::int64_t>(shape.outputs)}, kFirstLogDeviation, at::kFloat).requires_grad_());
  }
  value_first_ = parameters_.size();
  append_network(shape, 1, 1.0, random, parameters_);
}

at::Tensor Model::run(const at::Tensor& observations, std::size_t first) const {
  at::Tensor units = observations;
  for (std::size_t layer = 0; layer <= shape_.layers; ++layer) {
    const std::size_t at = first + 2 * layer;
    units = at::addmm(parameters_[at + 1], units, parameters_[at].t());
    if (layer < shape_.layers) units = units.tanh();
  }
  return units;
}

ActionFacts Model::judge(const at::Tensor& observations, const at::Tensor& actions) const {
  const at::Tensor outputs = run(observations, 0);
  if (!shape_.continuous) {
    const at::Tensor log_probabilities = at::log_softmax(outputs, 1);
    return {.log_probabilities = log_probabilities.gather(1, actions.unsqueeze(1)).squeeze(1),
            .entropy = log_probabilities.exp().mul(log_probabilities).sum(1).mean().neg()};
  }
  const at::Tensor& log_deviations = parameters_[value_first_ - 1];
  const double half_log_2_pi = std::log(2 * std::numbers::pi) / 2;
  const at::Tensor distance = actions.sub(outputs).mul(log_deviations.neg().exp());
  return {.log_probabilities = distance.square().mul(-0.5).sub(log_deviations).sub(half_log_2_pi).sum(1),
          .entropy = log_deviations.add(0.5 + half_log_2_pi).sum()};
}

at::Tensor Model::values(const at::Tensor& observations) const { return run(observations, value_first_).squeeze(1); }

void Model::append_policy(std::vector<float>& weights) const {
  for (std::size_t i = 0; i < value_first_; ++i) {
    const at::Tensor values = parameters_[i].contiguous();
    const auto* const data = values.const_data_ptr<float>();
    weights.insert(weights.end(), data, data + values.numel());
  }
}

}  // namespace caftan::actor_critic
