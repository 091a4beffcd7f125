/// Adadelta, in the order of operations of torch.optim.Adadelta.
#pragma once

#include "algorithm_trait.hpp"

namespace caftan::optim {

template <>
struct AlgorithmTrait<Adadelta> {
  static constexpr bool kTakesComplex = false;
  static constexpr bool kKeepsSparse = false;

  static std::string_view name(const Adadelta&) noexcept { return "Adadelta"; }

  static Result<void> check(const Adadelta& adadelta) {
    return OptionCheck("Adadelta")
        .not_negative("lr", adadelta.lr)
        .within_one("rho", adadelta.rho)
        .not_negative("eps", adadelta.eps)
        .not_negative("weight_decay", adadelta.weight_decay)
        .result();
  }

  static SlotNames slots(const Adadelta&) { return {"square_avg", "acc_delta", ""}; }

  static std::string refusal(const Adadelta&, const at::Tensor& gradient, const ParameterState&) {
    return refuse_sparse("Adadelta", gradient);
  }

  static void allocate(const Adadelta&, const at::Tensor& parameter, const at::Tensor&, ParameterState& state) {
    allocate_zeros(2, parameter, state);
  }

  static void step(const Adadelta& adadelta, std::span<const Stepped> list) {
    for (const Stepped& s : list) {
      const at::Tensor gradient = decayed_gradient(adadelta, s);
      at::Tensor& square_mean = s.state->tensors[0];
      at::Tensor& delta_mean = s.state->tensors[1];
      square_mean.mul_(adadelta.rho).addcmul_(gradient, gradient, 1 - adadelta.rho);
      const at::Tensor root = square_mean.add(adadelta.eps).sqrt_();
      const at::Tensor delta = delta_mean.add(adadelta.eps).sqrt_().div_(root).mul_(gradient);
      delta_mean.mul_(adadelta.rho).addcmul_(delta, delta, 1 - adadelta.rho);
      s.parameter->add_(delta, -adadelta.lr);
    }
  }
};

}  // namespace caftan::optim
