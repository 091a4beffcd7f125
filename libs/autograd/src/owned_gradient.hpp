/// The tensor that a gradient book keeps of a gradient it gets: the gradient itself, or a copy.
#pragma once

#include <ATen/core/Tensor.h>

namespace caftan::autograd {

/// Returns `gradient` itself, detached, when no other reference to it or its memory exists and its strides suit the
/// leaf, as AccumulateGrad does; else a copy. Memory that is part of a received message counts as held. Grad mode must
/// be off.
at::Tensor owned_gradient(const at::Tensor& leaf, at::Tensor&& gradient);

}  // namespace caftan::autograd
