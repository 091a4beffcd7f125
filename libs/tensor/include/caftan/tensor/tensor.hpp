/// The tensor type with its methods; for operators (`t + 1`) include caftan/tensor/operators.hpp, for functions
/// ATen/ops/NAME.h.
#pragma once

#include <ATen/core/Tensor.h>

namespace caftan {

/// libtorch's tensor, under the name that this library uses in signatures.
using Tensor = at::Tensor;

}  // namespace caftan
