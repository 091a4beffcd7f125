/// `StagedGradients`: the leaf gradients of a pass that is not decided yet.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/autograd/gradient_book.hpp"

namespace caftan::autograd {

/// A leaf has several contributions only where checkpointed segments use it. They come in any order when nodes wait for
/// other workers, and are then kept apart until all are there, so that their sum does not depend on that order.
class StagedGradients {
 public:
  /// @param any_order  whether contributions may come in another order than that of their ranks
  explicit StagedGradients(bool any_order) : any_order_(any_order) {}

  /// @param rank  place of the node that gave the gradient in the order of summation
  void add(const at::Tensor& leaf, at::Tensor&& gradient, std::uint32_t rank);

  /// Returns the sums of all leaves; this object is empty afterwards.
  GradientBook take();

 private:
  struct Contribution {
    at::Tensor leaf;
    at::Tensor gradient;
    std::uint32_t rank;
  };

  const bool any_order_;
  GradientBook book_;
  std::vector<Contribution> apart_;
};

}  // namespace caftan::autograd
