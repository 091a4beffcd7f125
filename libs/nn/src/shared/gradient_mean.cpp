#include "caftan/nn/gradient_mean.hpp"

#include <ATen/core/grad_mode.h>

#include <string>

#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::nn {
namespace {

using Gradients = std::vector<at::Tensor>;

/// A dense tensor takes a sparse one, not the reverse.
at::Tensor sum_of(const at::Tensor& one, const at::Tensor& other) {
  return one.is_sparse() && !other.is_sparse() ? other.add(one) : one.add(other);
}

at::Tensor mean_of(std::span<const Gradients> contributions, std::size_t parameter) {
  at::Tensor sum;
  for (const Gradients& gradients : contributions) {
    const at::Tensor& gradient = gradients[parameter];
    if (!gradient.defined()) continue;
    sum = sum.defined() ? sum_of(sum, gradient) : gradient;
  }
  return sum.defined() ? sum.div(static_cast<double>(contributions.size())) : sum;
}

}  // namespace

Result<std::vector<at::Tensor>> gradient_mean(std::span<const std::vector<at::Tensor>> contributions) {
  if (contributions.empty()) return Error(Errc::bad_arguments, "a step without a contribution");
  for (const Gradients& gradients : contributions) {
    if (gradients.size() != contributions.front().size()) {
      return Error(Errc::bad_arguments, "contributions with " + std::to_string(contributions.front().size()) + " and " +
                                            std::to_string(gradients.size()) + " gradients");
    }
  }
  if (contributions.size() == 1) return contributions.front();
  return tensor::catch_torch(Errc::invalid_gradient, [&]() -> Result<std::vector<at::Tensor>> {
    const at::NoGradGuard no_grad;
    Gradients means;
    for (std::size_t parameter = 0; parameter < contributions.front().size(); ++parameter) {
      means.push_back(mean_of(contributions, parameter));
    }
    return means;
  });
}

}  // namespace caftan::nn
