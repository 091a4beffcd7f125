/// Adam and AdamW, in the order of operations of torch::optim::Adam and AdamW.
#pragma once

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>

#include <cmath>
#include <optional>

#include "algorithm_trait.hpp"
#include "algorithms/fused.hpp"

namespace caftan::optim {

template <bool Decoupled>
struct AlgorithmTrait<AdamFamily<Decoupled>> {
  using Options = AdamFamily<Decoupled>;
  static constexpr bool kTakesComplex = false;
  static constexpr bool kKeepsSparse = false;

  static std::string_view name(const Options&) noexcept { return Decoupled ? "AdamW" : "Adam"; }

  static Result<void> check(const Options& adam) {
    return OptionCheck(name(adam))
        .not_negative("lr", adam.lr)
        .below_one("betas[0]", adam.betas.first)
        .below_one("betas[1]", adam.betas.second)
        .not_negative("eps", adam.eps)
        .not_negative("weight_decay", adam.weight_decay)
        .result();
  }

  static SlotNames slots(const Options& adam) {
    return {"exp_avg", "exp_avg_sq", adam.amsgrad ? "max_exp_avg_sq" : ""};
  }

  static std::string refusal(const Options& adam, const at::Tensor& gradient, const ParameterState&) {
    return refuse_sparse(name(adam), gradient);
  }

  static void allocate(const Options& adam, const at::Tensor& parameter, const at::Tensor&, ParameterState& state) {
    allocate_zeros(adam.amsgrad ? 3 : 2, parameter, state);
  }

  static void step(const Options& adam, std::span<const Stepped> list) {
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

 private:
  static void step_one(const Options& adam, const Stepped& s) {
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
};

}  // namespace caftan::optim
