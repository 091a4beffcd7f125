#include "agents/policy.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace caftan::agents {
namespace {

/// One layer for n rows: out[unit][row] = bias[unit] + sum over i of weight[unit][i] * in[i][row], added in the order
/// of i. The lanes of a vector register are rows, so the number of rows changes no bit.
void apply_layer(std::span<const float> weight, std::span<const float> bias, std::span<const float> in,
                 std::size_t rows, std::span<float> out) noexcept {
  const std::size_t inputs = in.size() / rows;
  for (std::size_t unit = 0; unit < bias.size(); ++unit) {
    float* const to = out.data() + unit * rows;
    std::fill_n(to, rows, bias[unit]);
    for (std::size_t i = 0; i < inputs; ++i) {
      const float factor = weight[unit * inputs + i];
      const float* const from = in.data() + i * rows;
      for (std::size_t row = 0; row < rows; ++row) to[row] += factor * from[row];
    }
  }
}

std::size_t layer_weights(std::size_t in, std::size_t out) noexcept { return in * out + out; }

/// Returns a draw of the normal distribution. Two uniform numbers each, so that draws have places.
double draw_normal(rl::Pcg64& random) noexcept {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

}  // namespace

PolicyShape shape_for(const rl::EnvironmentSpec& spec, std::size_t hidden, std::size_t layers) {
  return {.observation = spec.observation_size,
          .hidden = hidden,
          .layers = layers,
          .outputs = spec.is_continuous() ? spec.action_size() : static_cast<std::size_t>(spec.actions),
          .continuous = spec.is_continuous()};
}

std::size_t weight_count(const PolicyShape& shape) noexcept {
  std::size_t count = 2 * shape.observation;
  std::size_t in = shape.observation;
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    count += layer_weights(in, shape.hidden);
    in = shape.hidden;
  }
  return count + layer_weights(in, shape.outputs) + (shape.continuous ? shape.outputs : 0);
}

void tanh_all(std::span<float> values) noexcept {
  for (float& value : values) {
    const float x = std::min(std::max(value, -7.90531110763549805F), 7.90531110763549805F);
    const float y = x * x;
    float above = y * -2.76076847742355e-16F + 2.00018790482477e-13F;
    above = y * above + -8.60467152213735e-11F;
    above = y * above + 5.12229709037114e-08F;
    above = y * above + 1.48572235717979e-05F;
    above = y * above + 6.37261928875436e-04F;
    above = y * above + 4.89352455891786e-03F;
    float below = y * 1.19825839466702e-06F + 1.18534705686654e-04F;
    below = y * below + 2.26843463243900e-03F;
    below = y * below + 4.89352518554385e-03F;
    value = x * above / below;
  }
}

void to_bounds(const rl::EnvironmentSpec& spec, std::span<const float> actions, std::vector<float>& out) {
  out.resize(actions.size());
  const std::size_t parts = spec.action_size();
  for (std::size_t at = 0; at < actions.size(); ++at) {
    const float low = spec.action_low[at % parts];
    const float high = spec.action_high[at % parts];
    const bool is_bounded = std::isfinite(low) && std::isfinite(high);
    out[at] = is_bounded ? (low + high) / 2 + (high - low) / 2 * actions[at] : actions[at];
  }
}

Policy::Policy(const PolicyShape& shape) : shape_(shape), weights_(weight_count(shape), 0.0F) {}

Result<void> Policy::load(std::span<const float> weights) {
  if (weights.size() != weights_.size()) {
    return Error(Errc::bad_arguments,
                 std::to_string(weights.size()) + " weights for a policy that has " + std::to_string(weights_.size()));
  }
  std::ranges::copy(weights, weights_.begin());
  return {};
}

/// Leaves the outputs in `units_`, [outputs, n]. Returns n.
std::size_t Policy::forward(std::span<const float> observations) {
  const std::size_t inputs = shape_.observation;
  const std::size_t rows = observations.size() / inputs;
  std::span<const float> rest(weights_);
  const auto take = [&](std::size_t count) {
    const auto taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
  };
  const auto mean = take(inputs);
  const auto scale = take(inputs);
  units_.resize(inputs * rows);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < inputs; ++i) {
      const float value = (observations[row * inputs + i] - mean[i]) * scale[i];
      units_[i * rows + row] = std::min(std::max(value, -kObservationLimit), kObservationLimit);
    }
  }
  for (std::size_t layer = 0; layer <= shape_.layers; ++layer) {
    const std::size_t in = units_.size() / rows;
    const std::size_t out = layer == shape_.layers ? shape_.outputs : shape_.hidden;
    const auto weight = take(in * out);
    const auto bias = take(out);
    scratch_.resize(out * rows);
    apply_layer(weight, bias, units_, rows, scratch_);
    if (layer < shape_.layers) {
      if (shape_.relu) {
        for (float& unit : scratch_) unit = std::max(unit, 0.0F);
      } else {
        tanh_all(scratch_);
      }
    }
    units_.swap(scratch_);
  }
  return rows;
}

void Policy::act(std::span<const float> observations, rl::Pcg64& random, Actions& out) {
  const std::size_t rows = forward(observations);
  const std::size_t outputs = shape_.outputs;
  out.log_probabilities.assign(rows, 0.0F);
  out.discrete.resize(shape_.continuous ? 0 : rows);
  out.continuous.resize(shape_.continuous ? rows * outputs : 0);
  std::vector<double> weights(outputs);
  for (std::size_t row = 0; row < rows; ++row) {
    if (shape_.continuous) {
      const float* const log_deviations = weights_.data() + weights_.size() - outputs;
      double log_probability = 0;
      for (std::size_t part = 0; part < outputs; ++part) {
        const double noise = draw_normal(random);
        const double deviation = std::exp(static_cast<double>(log_deviations[part]));
        out.continuous[row * outputs + part] = static_cast<float>(units_[part * rows + row] + deviation * noise);
        log_probability -=
            noise * noise / 2 + static_cast<double>(log_deviations[part]) + std::log(2 * std::numbers::pi) / 2;
      }
      out.log_probabilities[row] = static_cast<float>(log_probability);
      continue;
    }
    float largest = units_[row];
    for (std::size_t action = 1; action < outputs; ++action) largest = std::max(largest, units_[action * rows + row]);
    double sum = 0;
    for (std::size_t action = 0; action < outputs; ++action) {
      weights[action] = std::exp(static_cast<double>(units_[action * rows + row] - largest));
      sum += weights[action];
    }
    double left = random.uniform() * sum;
    std::size_t chosen = 0;
    while (chosen + 1 < outputs && left >= weights[chosen]) left -= weights[chosen++];
    out.discrete[row] = static_cast<std::int32_t>(chosen);
    out.log_probabilities[row] = static_cast<float>(std::log(weights[chosen] / sum));
  }
}

void Policy::act_greedily(std::span<const float> observations, Actions& out) {
  const std::size_t rows = forward(observations);
  const std::size_t outputs = shape_.outputs;
  out.log_probabilities.clear();
  out.discrete.resize(shape_.continuous ? 0 : rows);
  out.continuous.resize(shape_.continuous ? rows * outputs : 0);
  for (std::size_t row = 0; row < rows; ++row) {
    if (shape_.continuous) {
      for (std::size_t part = 0; part < outputs; ++part) {
        out.continuous[row * outputs + part] = units_[part * rows + row];
      }
      continue;
    }
    std::size_t best = 0;
    for (std::size_t action = 1; action < outputs; ++action) {
      if (units_[action * rows + row] > units_[best * rows + row]) best = action;
    }
    out.discrete[row] = static_cast<std::int32_t>(best);
  }
}

}  // namespace caftan::agents
