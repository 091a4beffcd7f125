#include "actor_critic/messages.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace caftan::actor_critic {

EnvironmentFacts facts_of(const rl::EnvironmentSpec& spec, std::size_t environments) {
  return {.id = spec.id,
          .observation_size = spec.observation_size,
          .actions = spec.actions,
          .max_steps = spec.max_steps,
          .action_low = spec.action_low,
          .action_high = spec.action_high,
          .environments = environments};
}

rl::EnvironmentSpec spec_of(const EnvironmentFacts& facts) {
  rl::EnvironmentSpec spec;
  spec.id = facts.id;
  spec.observation_size = facts.observation_size;
  spec.actions = static_cast<int>(facts.actions);
  spec.max_steps = static_cast<int>(facts.max_steps);
  spec.action_low = facts.action_low;
  spec.action_high = facts.action_high;
  return spec;
}

at::Tensor to_tensor(const std::vector<float>& weights) {
  at::Tensor values = at::empty({static_cast<std::int64_t>(weights.size())}, at::kFloat);
  std::ranges::copy(weights, values.mutable_data_ptr<float>());
  return values;
}

Result<std::vector<float>> to_weights(const at::Tensor& values) {
  if (!values.defined() || values.scalar_type() != at::kFloat || !values.is_cpu() || values.dim() != 1) {
    return Error(Errc::bad_arguments, "the weights of a policy are a row of float32 on the CPU");
  }
  const at::Tensor row = values.contiguous();
  const auto* const data = row.const_data_ptr<float>();
  return std::vector<float>(data, data + row.numel());
}

}  // namespace caftan::actor_critic
