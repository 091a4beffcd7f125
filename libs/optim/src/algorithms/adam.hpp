/// Adam and AdamW, in the order of operations of torch::optim::Adam and AdamW.
#pragma once

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>

#include <cmath>
#include <optional>

#include "algorithm_trait.hpp"
#include "algorithms/adam_kernel.hpp"
#include "algorithms/fused.hpp"
#include "kernel_call.hpp"

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
    Roots roots;
    std::uint64_t steps = 0;
    AdamKernel<Decoupled> kernel = kernel_of(adam, Corrections(adam, steps));
    for (const Stepped& s : list) {
      if (s.state->steps != steps) {
        steps = s.state->steps;
        kernel = kernel_of(adam, Corrections(adam, steps));
      }
      if (step_by_kernel(kernel, s, adam.amsgrad ? 3 : 2, roots)) continue;
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
    const auto with_lists = [&](auto&& fused) {
      fused(parameters, gradients, means, seconds, largests, counts, adam.lr, adam.betas.first, adam.betas.second,
            adam.weight_decay, adam.eps, adam.amsgrad, adam.maximize, std::nullopt, std::nullopt);
    };
    if constexpr (Decoupled) {
      with_lists([](auto&&... a) { at::_fused_adamw_(a...); });
    } else {
      with_lists([](auto&&... a) { at::_fused_adam_(a...); });
    }
  }

 private:
  /// What corrects a step for the zeros that the means began with.
  struct Corrections {
    Corrections(const Options& adam, std::uint64_t steps)
        : rate(adam.lr / (1 - std::pow(adam.betas.first, static_cast<double>(steps + 1)))),
          root(std::sqrt(1 - std::pow(adam.betas.second, static_cast<double>(steps + 1)))) {}
    double rate;
    double root;
  };

  static AdamKernel<Decoupled> kernel_of(const Options& adam, const Corrections& corrections) {
    return {.decay = Decoupled ? 1 - adam.lr * adam.weight_decay : adam.weight_decay,
            .mean_kept = adam.betas.first,
            .mean_taken = 1 - adam.betas.first,
            .squares_kept = adam.betas.second,
            .squares_taken = 1 - adam.betas.second,
            .root_correction = corrections.root,
            .eps = adam.eps,
            .rate = -corrections.rate,
            .decays = adam.weight_decay != 0,
            .amsgrad = adam.amsgrad,
            .maximize = adam.maximize,
            .fused = adam.fused};
  }

  static void step_one(const Options& adam, const Stepped& s) {
    const Corrections corrections(adam, s.state->steps);
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
    const at::Tensor denominator = (adam.amsgrad ? largest : second).sqrt().div_(corrections.root).add_(adam.eps);
    s.parameter->addcdiv_(mean, denominator, -corrections.rate);
  }
};

}  // namespace caftan::optim
