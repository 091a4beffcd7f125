/// Adagrad, in the order of operations of torch::optim::Adagrad.
#pragma once

#include <ATen/ops/full_like.h>
#include <ATen/ops/sparse_coo_tensor.h>

#include "algorithm_trait.hpp"
#include "algorithms/adagrad_kernel.hpp"
#include "kernel_call.hpp"

namespace caftan::optim {

template <>
struct AlgorithmTrait<Adagrad> {
  static constexpr bool kTakesComplex = false;
  static constexpr bool kKeepsSparse = false;

  static std::string_view name(const Adagrad&) noexcept { return "Adagrad"; }

  static Result<void> check(const Adagrad& adagrad) {
    return OptionCheck("Adagrad")
        .not_negative("lr", adagrad.lr)
        .not_negative("lr_decay", adagrad.lr_decay)
        .not_negative("weight_decay", adagrad.weight_decay)
        .not_negative("initial_accumulator_value", adagrad.initial_accumulator_value)
        .not_negative("eps", adagrad.eps)
        .result();
  }

  static SlotNames slots(const Adagrad&) { return {"sum", "", ""}; }

  static std::string refusal(const Adagrad& adagrad, const at::Tensor& gradient, const ParameterState&) {
    return gradient.is_sparse() && adagrad.weight_decay != 0 ? refuse_decay_of_sparse("Adagrad") : std::string();
  }

  static void allocate(const Adagrad& adagrad, const at::Tensor& parameter, const at::Tensor&, ParameterState& state) {
    state.tensors[0] = at::full_like(parameter, adagrad.initial_accumulator_value,
                                     parameter.options().requires_grad(false), at::MemoryFormat::Preserve);
  }

  static void step(const Adagrad& adagrad, std::span<const Stepped> list) {
    Roots roots;
    for (const Stepped& s : list) {
      const double lr = adagrad.lr / (1 + static_cast<double>(s.state->steps) * adagrad.lr_decay);
      const AdagradKernel kernel{
          .weight_decay = adagrad.weight_decay, .eps = adagrad.eps, .rate = -lr, .maximize = adagrad.maximize};
      if (step_by_kernel(kernel, s, 1, roots)) continue;
      const at::Tensor gradient = decayed_gradient(adagrad, s);
      at::Tensor& sum = s.state->tensors[0];
      if (gradient.is_sparse()) {
        step_sparse(adagrad, s, gradient.coalesce(), sum, lr);
        continue;
      }
      sum.addcmul_(gradient, gradient, 1.0);
      s.parameter->addcdiv_(gradient, sum.sqrt().add_(adagrad.eps), -lr);
    }
  }

 private:
  /// Steps the rows that the gradient has.
  static void step_sparse(const Adagrad& adagrad, const Stepped& s, const at::Tensor& gradient, at::Tensor& sum,
                          double lr) {
    const at::Tensor values = gradient._values();
    const auto in_its_rows = [&gradient](const at::Tensor& row_values) {
      return at::sparse_coo_tensor(gradient._indices(), row_values, gradient.sizes(), gradient.options());
    };
    sum.add_(in_its_rows(values.pow(2)));
    const at::Tensor root = sum.sparse_mask(gradient)._values().sqrt_().add_(adagrad.eps);
    s.parameter->add_(in_its_rows(values.div(root)), -lr);
  }
};

}  // namespace caftan::optim
