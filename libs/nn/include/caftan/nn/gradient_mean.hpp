/// `gradient_mean`: combines the gradients of one step of a shared module. The server and a replay both call this
/// function, so that both add in the same order (CM-12).
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::nn {

/// Returns for each parameter the sum of its gradients, from the first contribution to the last, divided by the number
/// of contributions; a contribution without a gradient of the parameter counts as zero; a parameter of which no
/// contribution has a gradient gets none. A single contribution is returned as it is. No gradient is modified.
/// @param contributions  of each the gradients of all parameters, in their order; undefined where there is none
/// Errors: bad_arguments (no contribution, or lists of different lengths), invalid_gradient (what libtorch cannot add),
///   limit_exceeded (no memory).
Result<std::vector<at::Tensor>> gradient_mean(std::span<const std::vector<at::Tensor>> contributions);

}  // namespace caftan::nn
