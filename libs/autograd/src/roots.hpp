/// The roots of a pass: checked, and made into edges with a gradient each.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/tensor/tensor.hpp"

namespace caftan::autograd {

struct Roots {
  std::vector<torch::autograd::Edge> edges;
  std::vector<at::Tensor> gradients;  ///< one per edge
};

/// Errors: as Engine::add_roots. Grad mode must be off.
Result<Roots> make_roots(std::span<const at::Tensor> tensors, std::span<const at::Tensor> gradients);

/// Checks that `gradient` is one of the tensor that `edge` leads to: its sizes, dtype and device, its layout or sparse
/// COO where that is dense. Errors: `code`, with `name` first in the text.
Result<void> check_gradient(const at::Tensor& gradient, const torch::autograd::Edge& edge, Errc code,
                            const std::string& name);

}  // namespace caftan::autograd
