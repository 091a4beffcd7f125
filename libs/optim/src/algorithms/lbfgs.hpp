/// LBFGS: its options and checks. The steps are those of `Lbfgs`, over all parameters at once.
#pragma once

#include "algorithm_trait.hpp"

namespace caftan::optim {

template <>
struct AlgorithmTrait<LBFGS> {
  static constexpr bool kTakesComplex = false;
  static constexpr bool kKeepsSparse = false;
  static constexpr bool kNeedsClosure = true;

  static std::string_view name(const LBFGS&) noexcept { return "LBFGS"; }

  static Result<void> check(const LBFGS& lbfgs) {
    const std::int64_t max_eval = lbfgs.max_eval.value_or(1);
    return OptionCheck("LBFGS")
        .not_negative("lr", lbfgs.lr)
        .require(lbfgs.max_iter >= 1, "max_iter", static_cast<double>(lbfgs.max_iter), ">= 1")
        .require(max_eval >= 1, "max_eval", static_cast<double>(max_eval), ">= 1")
        .not_negative("tolerance_grad", lbfgs.tolerance_grad)
        .not_negative("tolerance_change", lbfgs.tolerance_change)
        .require(lbfgs.history_size >= 1, "history_size", static_cast<double>(lbfgs.history_size), ">= 1")
        .result();
  }

  static SlotNames slots(const LBFGS&) { return {}; }
  static std::string refusal(const LBFGS&, const at::Tensor&, const ParameterState&) { return {}; }
  static void allocate(const LBFGS&, const at::Tensor&, const at::Tensor&, ParameterState&) {}
};

}  // namespace caftan::optim
