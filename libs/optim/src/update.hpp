/// The arithmetic of the algorithms over lists of parameters of one group. The caller has checked all arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "caftan/optim/local_optimizer.hpp"

namespace caftan::optim {

/// One parameter of a step. The objects that its members refer to outlive the step.
struct Stepped {
  const at::Tensor* parameter;
  const at::Tensor* gradient;
  ParameterState* state;
};

/// Allocates what the algorithm needs for a parameter that it has not stepped yet, with the values it begins from.
void allocate_state(const Algorithm& algorithm, const at::Tensor& parameter, const at::Tensor& gradient,
                    ParameterState& state);

/// Steps all of `list` and counts the step in each state. Version counters are the caller's. Grad mode must be off.
void update_group(const Algorithm& algorithm, std::span<const Stepped> list);

}  // namespace caftan::optim
