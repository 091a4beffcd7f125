/// Rprop, in the order of operations of torch.optim.Rprop.
#pragma once

#include "algorithm_trait.hpp"

namespace caftan::optim {

template <>
struct AlgorithmTrait<Rprop> {
  static constexpr bool kTakesComplex = false;
  static constexpr bool kKeepsSparse = false;

  static std::string_view name(const Rprop&) noexcept { return "Rprop"; }

  static Result<void> check(const Rprop& rprop) {
    const auto [shrink, grow] = rprop.etas;
    const auto [smallest, largest] = rprop.step_sizes;
    return OptionCheck("Rprop")
        .not_negative("lr", rprop.lr)
        .require(shrink > 0 && shrink < 1, "etas[0]", shrink, "in (0, 1)")
        .finite("etas[1]", grow)
        .require(grow > 1, "etas[1]", grow, "> 1")
        .not_negative("step_sizes[0]", smallest)
        .require(largest >= smallest, "step_sizes[1]", largest, ">= step_sizes[0], which is " + text_of(smallest))
        .result();
  }

  static SlotNames slots(const Rprop&) { return {"prev", "step_size", ""}; }

  static std::string refusal(const Rprop&, const at::Tensor& gradient, const ParameterState&) {
    return refuse_sparse("Rprop", gradient);
  }

  static void allocate(const Rprop&, const at::Tensor& parameter, const at::Tensor&, ParameterState& state) {
    allocate_zeros(2, parameter, state);
  }

  static void step(const Rprop& rprop, std::span<const Stepped> list) {
    for (const Stepped& s : list) {
      const at::Tensor gradient = rprop.maximize ? s.gradient->neg() : *s.gradient;
      at::Tensor& previous = s.state->tensors[0];
      at::Tensor& step_size = s.state->tensors[1];
      // Not done in `allocate`, because the rate of the first step may be set after that.
      if (s.state->steps == 0) step_size.fill_(rprop.lr);
      const at::Tensor product = gradient.mul(previous);
      const at::Tensor turned = product.lt(0);
      // An element that is no number stays one, as in PyTorch.
      const at::Tensor factor = product.sign().masked_fill_(product.eq(0), 1);
      factor.masked_fill_(product.gt(0), rprop.etas.second).masked_fill_(turned, rprop.etas.first);
      step_size.mul_(factor).clamp_(at::Scalar(rprop.step_sizes.first), at::Scalar(rprop.step_sizes.second));
      const at::Tensor used = gradient.masked_fill(turned, 0);
      s.parameter->addcmul_(used.sign(), step_size, -1);
      previous.copy_(used);
    }
  }
};

}  // namespace caftan::optim
