/// Which parameters libtorch's fused kernels can step.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "update.hpp"

namespace caftan::optim {

using Tensors = std::vector<at::Tensor>;

/// The fused kernels walk all tensors of a parameter as one row of numbers, so these must lie alike.
inline bool lie_alike(const at::Tensor& a, const at::Tensor& b) {
  return b.layout() == at::kStrided && a.strides() == b.strides() && b.is_non_overlapping_and_dense();
}

inline bool can_fuse(const Stepped& s) {
  return !s.parameter->is_complex() && s.parameter->is_non_overlapping_and_dense() &&
         lie_alike(*s.parameter, *s.gradient);
}

}  // namespace caftan::optim
