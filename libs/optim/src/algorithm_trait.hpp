/// `AlgorithmTrait`: the code of one algorithm, specialized for the algorithm's options in its file of `algorithms/`.
/// algorithms.cpp asks the trait of the algorithm at hand.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "caftan/optim/local_optimizer.hpp"
#include "option_check.hpp"
#include "update.hpp"

namespace caftan::optim {

/// A specialization has these members:
///     static std::string_view name(const Options&);
///     static Result<void> check(const Options&);                 // errors: bad_arguments
///     static SlotNames slots(const Options&);                    // PyTorch's names
///     static constexpr bool kTakesComplex;                       // complex parameters
///     static constexpr bool kKeepsSparse;                        // a state tensor may be sparse
///     static constexpr std::size_t kLateSlot;                    // only if there is one: see is_late
///     static std::string refusal(const Options&, const at::Tensor& gradient, const ParameterState&);
///     static void allocate(const Options&, const at::Tensor& parameter, const at::Tensor& gradient, ParameterState&);
///     static void step(const Options&, std::span<const Stepped>);   // not with kNeedsClosure
///     static constexpr bool kNeedsClosure;                       // only where true
/// `allocate` is called before the first step of a parameter, and before a later one if the parameter lacks the tensor
/// of the late slot. `refusal` says why the algorithm cannot take a gradient that fits its parameter, and is empty if
/// it can.
template <class Options>
struct AlgorithmTrait;

/// Returns zeros in the layout of the parameter.
inline at::Tensor zeros_for(const at::Tensor& parameter) {
  return at::zeros_like(parameter, parameter.options().requires_grad(false), at::MemoryFormat::Preserve);
}

/// Allocates the first `count` state tensors as zeros.
inline void allocate_zeros(std::size_t count, const at::Tensor& parameter, ParameterState& state) {
  for (std::size_t i = 0; i < count; ++i) state.tensors[i] = zeros_for(parameter);
}

inline std::string refuse_sparse(std::string_view algorithm, const at::Tensor& gradient) {
  if (!gradient.is_sparse()) return {};
  return "has a sparse gradient: " + std::string(algorithm) +
         " does not support sparse gradients; use SGD or Adagrad for its group";
}

inline std::string refuse_decay_of_sparse(std::string_view algorithm) {
  return "has a sparse gradient, which " + std::string(algorithm) +
         " takes only without weight_decay: use weight_decay 0 for its group";
}

/// Returns the gradient to step against, with the weight decay in it.
template <class Options>
at::Tensor decayed_gradient(const Options& options, const Stepped& s) {
  at::Tensor gradient = options.maximize ? s.gradient->neg() : *s.gradient;
  if (options.weight_decay != 0) gradient = gradient.add(*s.parameter, options.weight_decay);
  return gradient;
}

}  // namespace caftan::optim
