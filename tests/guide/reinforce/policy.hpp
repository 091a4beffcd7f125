// The policy: a small network whose tensors travel. Nothing in it knows of workers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>

#include <caftan/nn/fill_uniform.hpp>
#include <caftan/rl/random.hpp>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

struct Policy {
  at::Tensor weight1, bias1, weight2, bias2;  // [hidden, inputs], [hidden], [actions, hidden], [actions]

  at::Tensor forward(const at::Tensor& observations) const {  // [..., inputs] -> log-probabilities [..., actions]
    const at::Tensor hidden = at::linear(observations, weight1, bias1).tanh();
    return at::log_softmax(at::linear(hidden, weight2, bias2), -1);
  }
  int choose(std::span<const float> observation, caftan::rl::Pcg64& random) const {  // draws an action
    const at::Tensor chances = forward(at::tensor(at::ArrayRef<float>(observation.data(), observation.size()))).exp();
    const float* const chance = chances.const_data_ptr<float>();
    int action = 0;
    double left = random.uniform() - chance[0];
    while (left >= 0 && action + 1 < chances.numel()) left -= chance[++action];
    return action;
  }
  std::vector<at::Tensor> parameters() const { return {weight1, bias1, weight2, bias2}; }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {  // a struct with this travels
    archive& weight1& bias1& weight2& bias2;
  }
};

inline Policy make_policy(std::int64_t inputs, std::int64_t hidden, std::int64_t actions, std::uint64_t seed) {
  const auto draw = [seed](at::IntArrayRef sizes, std::int64_t fan_in, std::uint64_t call) {
    at::Tensor parameter = at::empty(sizes);
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    caftan::nn::fill_uniform(parameter, {.seed = seed, .call = call}, -bound, bound);
    return parameter.requires_grad_();
  };
  return {draw({hidden, inputs}, inputs, 0), draw({hidden}, inputs, 1), draw({actions, hidden}, hidden, 2),
          draw({actions}, hidden, 3)};
}
