/// The arithmetic of the algorithms over lists of parameters of one group. The caller has checked all arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <span>
#include <string>

#include "caftan/optim/local_optimizer.hpp"

namespace caftan::optim {

/// One parameter of a step. The objects that its members refer to outlive the step.
struct Stepped {
  const at::Tensor* parameter;
  const at::Tensor* gradient;
  ParameterState* state;
};

/// The names of the state tensors of a parameter that was stepped, in the order of `ParameterState::tensors`; an empty
/// one where the algorithm keeps no tensor with its options.
using SlotNames = std::array<std::string, kStateSlots>;

SlotNames slots_of(const Algorithm& algorithm);
/// Returns whether the algorithm steps complex parameters.
bool takes_complex(const Algorithm& algorithm) noexcept;
/// Returns whether a state tensor of the algorithm may be sparse.
bool keeps_sparse(const Algorithm& algorithm) noexcept;
/// Returns whether a parameter that was stepped may lack the tensor of a slot: the algorithm makes it when the
/// momentum, which a schedule may change, is not 0 for the first time.
bool is_late(const Algorithm& algorithm, std::size_t slot) noexcept;
/// Returns why the algorithm cannot take a gradient of the parameter's sizes and dtype, "" if it can.
std::string gradient_refusal(const Algorithm& algorithm, const at::Tensor& gradient, const ParameterState& state);

/// Returns whether `allocate_state` has to run before the next step of a parameter.
bool needs_allocation(const Algorithm& algorithm, const ParameterState& state) noexcept;
/// Allocates what the algorithm needs for the next step of a parameter, with the values that it begins from.
void allocate_state(const Algorithm& algorithm, const at::Tensor& parameter, const at::Tensor& gradient,
                    ParameterState& state);

/// Steps all of `list` and counts the step in each state. The caller has checked the arguments. Version counters are
/// the caller's. Grad mode must be off.
void update_group(const Algorithm& algorithm, std::span<const Stepped> list);

}  // namespace caftan::optim
