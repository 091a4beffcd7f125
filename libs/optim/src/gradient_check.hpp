/// Checks, before anything changes, whether an algorithm can step a parameter by a gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "caftan/optim/local_optimizer.hpp"

namespace caftan::optim {

/// @param number  of the parameter, for texts
/// Errors: bad_arguments, unsupported.
Result<void> check_parameter(const at::Tensor& parameter, const Algorithm& algorithm, std::size_t number);
Result<void> check_gradient(const at::Tensor& gradient, const at::Tensor& parameter, const ParameterState& state,
                            const Algorithm& algorithm, std::size_t number);

/// Returns "parameter 3 (float32 [4, 128])".
std::string describe(const at::Tensor& parameter, std::size_t number);

}  // namespace caftan::optim
