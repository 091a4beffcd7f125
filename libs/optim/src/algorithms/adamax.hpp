/// Adamax, in the order of operations of torch.optim.Adamax.
#pragma once

#include <ATen/ops/maximum.h>

#include <cmath>

#include "algorithm_trait.hpp"

namespace caftan::optim {

template <>
struct AlgorithmTrait<Adamax> {
  static constexpr bool kTakesComplex = false;
  static constexpr bool kKeepsSparse = false;

  static std::string_view name(const Adamax&) noexcept { return "Adamax"; }

  static Result<void> check(const Adamax& adamax) {
    return OptionCheck("Adamax")
        .not_negative("lr", adamax.lr)
        .below_one("betas[0]", adamax.betas.first)
        .below_one("betas[1]", adamax.betas.second)
        .not_negative("eps", adamax.eps)
        .not_negative("weight_decay", adamax.weight_decay)
        .result();
  }

  static SlotNames slots(const Adamax&) { return {"exp_avg", "exp_inf", ""}; }

  static std::string refusal(const Adamax&, const at::Tensor& gradient, const ParameterState&) {
    return refuse_sparse("Adamax", gradient);
  }

  static void allocate(const Adamax&, const at::Tensor& parameter, const at::Tensor&, ParameterState& state) {
    allocate_zeros(2, parameter, state);
  }

  static void step(const Adamax& adamax, std::span<const Stepped> list) {
    for (const Stepped& s : list) {
      const at::Tensor gradient = decayed_gradient(adamax, s);
      at::Tensor& mean = s.state->tensors[0];
      at::Tensor& largest = s.state->tensors[1];
      mean.lerp_(gradient, 1 - adamax.betas.first);
      const at::Tensor now = gradient.abs().add_(adamax.eps);
      at::maximum_out(largest, largest.mul_(adamax.betas.second), now);
      const double correction = 1 - std::pow(adamax.betas.first, static_cast<double>(s.state->steps + 1));
      s.parameter->addcdiv_(mean, largest, -(adamax.lr / correction));
    }
  }
};

}  // namespace caftan::optim
