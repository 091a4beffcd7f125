/// RMSprop, in the order of operations of torch::optim::RMSprop.
#pragma once

#include "algorithm_trait.hpp"

namespace caftan::optim {

template <>
struct AlgorithmTrait<RMSprop> {
  static constexpr bool kTakesComplex = false;
  static constexpr bool kKeepsSparse = false;

  static std::string_view name(const RMSprop&) noexcept { return "RMSprop"; }

  static Result<void> check(const RMSprop& rmsprop) {
    return OptionCheck("RMSprop")
        .not_negative("lr", rmsprop.lr)
        .within_one("alpha", rmsprop.alpha)
        .not_negative("eps", rmsprop.eps)
        .not_negative("weight_decay", rmsprop.weight_decay)
        .not_negative("momentum", rmsprop.momentum)
        .result();
  }

  static SlotNames slots(const RMSprop& rmsprop) {
    return {"square_avg", "momentum_buffer", rmsprop.centered ? "grad_avg" : ""};
  }
  static constexpr std::size_t kLateSlot = 1;

  static std::string refusal(const RMSprop&, const at::Tensor& gradient, const ParameterState&) {
    return refuse_sparse("RMSprop", gradient);
  }

  static void allocate(const RMSprop& rmsprop, const at::Tensor& parameter, const at::Tensor&, ParameterState& state) {
    if (state.steps == 0) {
      state.tensors[0] = zeros_for(parameter);
      state.tensors[1].reset();
      if (rmsprop.centered) state.tensors[2] = zeros_for(parameter);
    }
    if (rmsprop.momentum != 0 && !state.tensors[1].defined()) state.tensors[1] = zeros_for(parameter);
  }

  static void step(const RMSprop& rmsprop, std::span<const Stepped> list) {
    for (const Stepped& s : list) {
      const at::Tensor gradient = decayed_gradient(rmsprop, s);
      auto& [square_mean, buffer, mean] = s.state->tensors;
      square_mean.mul_(rmsprop.alpha).addcmul_(gradient, gradient, 1 - rmsprop.alpha);
      at::Tensor root;
      if (rmsprop.centered) {
        mean.mul_(rmsprop.alpha).add_(gradient, 1 - rmsprop.alpha);
        root = square_mean.addcmul(mean, mean, -1).sqrt_().add_(rmsprop.eps);
      } else {
        root = square_mean.sqrt().add_(rmsprop.eps);
      }
      if (rmsprop.momentum != 0) {
        buffer.mul_(rmsprop.momentum).addcdiv_(gradient, root);
        s.parameter->add_(buffer, -rmsprop.lr);
      } else {
        s.parameter->addcdiv_(gradient, root, -rmsprop.lr);
      }
    }
  }
};

}  // namespace caftan::optim
