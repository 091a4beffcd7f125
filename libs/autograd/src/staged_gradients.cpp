#include "staged_gradients.hpp"

#include <algorithm>
#include <utility>

#include "owned_gradient.hpp"

namespace caftan::autograd {

void StagedGradients::add(const at::Tensor& leaf, at::Tensor&& gradient, std::uint32_t rank) {
  if (any_order_) {
    apart_.push_back({leaf, owned_gradient(leaf, std::move(gradient)), rank});
  } else {
    book_.add(leaf, std::move(gradient));
  }
}

GradientBook StagedGradients::take() {
  std::stable_sort(apart_.begin(), apart_.end(),
                   [](const Contribution& a, const Contribution& b) { return a.rank < b.rank; });
  for (Contribution& one : std::exchange(apart_, {})) book_.add(one.leaf, std::move(one.gradient));
  return std::exchange(book_, {});
}

}  // namespace caftan::autograd
