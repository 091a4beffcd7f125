/// Clipping of gradients, by value and by the norm of all of them together. No function here modifies a gradient:
/// clipped gradients are new tensors. Undefined gradients stay undefined.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace caftan::optim {

/// Returns the sum of the squares of all elements, of complex ones the squared absolute value.
///
/// In double and in a fixed order, whatever the number of threads, so that the sum over owners is the same in every
/// run. Sparse gradients are coalesced first.
/// Threads: any. Throws what libtorch throws (out of memory).
double squared_norm(std::span<const at::Tensor> gradients);

/// Returns the factor by which to multiply every gradient: min(1, max_norm / (sqrt(squared_norm) + 1e-6)).
/// @param max_norm  > 0
/// Source: torch.nn.utils.clip_grad_norm_.
double clip_scale(double squared_norm, double max_norm) noexcept;

/// Returns each gradient times `scale`, the gradients themselves when it is 1.
std::vector<at::Tensor> scaled(std::span<const at::Tensor> gradients, double scale);

/// Returns each gradient with its elements limited to [-limit, limit]; only the present elements of sparse ones.
/// @param limit  > 0
/// Source: torch.nn.utils.clip_grad_value_.
std::vector<at::Tensor> clipped_by_value(std::span<const at::Tensor> gradients, double limit);

}  // namespace caftan::optim
