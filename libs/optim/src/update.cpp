#include "update.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <optional>

namespace caftan::optim {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The fused kernels walk all tensors of a parameter as one row of numbers: equal strides, and no gaps.
bool lie_alike(const at::Tensor& a, const at::Tensor& b) {
  return b.layout() == at::kStrided && a.strides() == b.strides() && b.is_non_overlapping_and_dense();
}

bool can_fuse(const Stepped& s) {
  return !s.parameter->is_complex() && s.parameter->is_non_overlapping_and_dense() &&
         lie_alike(*s.parameter, *s.gradient);
}

void step_one(const SGD& sgd, const Stepped& s) {
  at::Tensor gradient = *s.gradient;
  if (sgd.maximize) gradient = gradient.neg();
  if (sgd.weight_decay != 0) gradient = gradient.add(*s.parameter, sgd.weight_decay);
  if (sgd.momentum != 0) {
    at::Tensor& buffer = s.state->tensors[0];
    if (s.state->steps == 0) {
      buffer = gradient.clone();
    } else {
      buffer.mul_(sgd.momentum).add_(gradient, 1 - sgd.dampening);
    }
    gradient = sgd.nesterov ? gradient.add(buffer, sgd.momentum) : buffer;
  }
  s.parameter->add_(gradient, -sgd.lr);
}

struct SgdLists {
  Tensors parameters, gradients, buffers;

  void run(const SGD& sgd, bool first) {
    if (parameters.empty()) return;
    at::_fused_sgd_(parameters, gradients, buffers, sgd.weight_decay, sgd.momentum, sgd.lr, sgd.dampening, sgd.nesterov,
                    sgd.maximize, first);
  }
};

void update(const SGD& sgd, std::span<const Stepped> list) {
  SgdLists first;
  SgdLists later;
  for (const Stepped& s : list) {
    const at::Tensor& buffer = s.state->tensors[0];
    if (!sgd.fused || !can_fuse(s) || (sgd.momentum != 0 && !lie_alike(*s.parameter, buffer))) {
      step_one(sgd, s);
      continue;
    }
    SgdLists& lists = s.state->steps == 0 ? first : later;
    lists.parameters.push_back(*s.parameter);
    lists.gradients.push_back(*s.gradient);
    if (sgd.momentum != 0) lists.buffers.push_back(buffer);
  }
  first.run(sgd, true);
  later.run(sgd, false);
}

/// The operations come in the order of torch::optim::Adam and AdamW.
template <bool Decoupled>
void step_one(const AdamFamily<Decoupled>& adam, const Stepped& s) {
  const auto count = static_cast<double>(s.state->steps + 1);
  const double correction1 = 1 - std::pow(adam.betas.first, count);
  const double correction2 = 1 - std::pow(adam.betas.second, count);
  auto& [mean, second, largest] = s.state->tensors;
  at::Tensor gradient = adam.maximize ? s.gradient->neg() : *s.gradient;
  if constexpr (Decoupled) {
    if (adam.weight_decay != 0) s.parameter->mul_(1 - adam.lr * adam.weight_decay);
  } else {
    if (adam.weight_decay != 0) gradient = gradient.add(*s.parameter, adam.weight_decay);
  }
  mean.mul_(adam.betas.first).add_(gradient, 1 - adam.betas.first);
  second.mul_(adam.betas.second).addcmul_(gradient, gradient, 1 - adam.betas.second);
  if (adam.amsgrad) at::maximum_out(largest, second, largest);
  const at::Tensor denominator = (adam.amsgrad ? largest : second).sqrt().div_(std::sqrt(correction2)).add_(adam.eps);
  s.parameter->addcdiv_(mean, denominator, -(adam.lr / correction1));
}

template <bool Decoupled>
void update(const AdamFamily<Decoupled>& adam, std::span<const Stepped> list) {
  Tensors parameters, gradients, means, seconds, largests, counts;
  for (const Stepped& s : list) {
    const auto& [mean, second, largest] = s.state->tensors;
    const bool fits = adam.fused && can_fuse(s) && lie_alike(*s.parameter, mean) && lie_alike(*s.parameter, second) &&
                      (!adam.amsgrad || lie_alike(*s.parameter, largest));
    if (!fits) {
      step_one(adam, s);
      continue;
    }
    parameters.push_back(*s.parameter);
    gradients.push_back(*s.gradient);
    means.push_back(mean);
    seconds.push_back(second);
    if (adam.amsgrad) largests.push_back(largest);
    counts.push_back(at::full({}, static_cast<double>(s.state->steps + 1), at::kFloat));
  }
  if (parameters.empty()) return;
  const auto kernel = [&](auto&& fused) {
    fused(parameters, gradients, means, seconds, largests, counts, adam.lr, adam.betas.first, adam.betas.second,
          adam.weight_decay, adam.eps, adam.amsgrad, adam.maximize, std::nullopt, std::nullopt);
  };
  if constexpr (Decoupled) {
    kernel([](auto&&... a) { at::_fused_adamw_(a...); });
  } else {
    kernel([](auto&&... a) { at::_fused_adam_(a...); });
  }
}

void allocate(const SGD& sgd, const at::Tensor& parameter, const at::Tensor& gradient, ParameterState& state) {
  // Only the fused kernel needs the momentum buffer beforehand, and fills it in its first step; elsewhere the buffer
  // becomes a copy of the first gradient, in that gradient's layout.
  if (sgd.momentum != 0 && sgd.fused && can_fuse({&parameter, &gradient, &state})) {
    state.tensors[0] = at::empty_like(parameter, parameter.options().requires_grad(false), at::MemoryFormat::Preserve);
  }
}

template <bool Decoupled>
void allocate(const AdamFamily<Decoupled>& adam, const at::Tensor& parameter, const at::Tensor&,
              ParameterState& state) {
  for (std::size_t i = 0; i < (adam.amsgrad ? 3U : 2U); ++i) {
    state.tensors[i] = at::zeros_like(parameter, parameter.options().requires_grad(false), at::MemoryFormat::Preserve);
  }
}

}  // namespace

void allocate_state(const Algorithm& algorithm, const at::Tensor& parameter, const at::Tensor& gradient,
                    ParameterState& state) {
  std::visit([&](const auto& options) { allocate(options, parameter, gradient, state); }, algorithm);
}

void update_group(const Algorithm& algorithm, std::span<const Stepped> list) {
  // Autograd records nothing here; without its dispatch each operation takes half the time.
  const at::AutoDispatchBelowADInplaceOrView below;
  std::visit([&](const auto& options) { update(options, list); }, algorithm);
  for (const Stepped& s : list) ++s.state->steps;
}

}  // namespace caftan::optim
