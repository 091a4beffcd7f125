#include "caftan/nn/gradient_mean.hpp"

#include <ATen/core/grad_mode.h>

#include <optional>
#include <string>

#include "caftan/tensor/internal/torch_errors.hpp"

namespace caftan::nn {
namespace {

using Gradients = std::vector<at::Tensor>;

/// What the gradients of one parameter add up to. The first sum makes a tensor; later sums and the quotient go into
/// that tensor, since its memory costs more than the additions. A contribution itself is never written.
class Sum {
 public:
  void add(const at::Tensor& gradient) {
    if (!value_.defined()) {
      value_ = gradient;
    } else if (takes(gradient)) {
      value_.add_(gradient);
    } else {
      // A dense tensor takes a sparse one, not the reverse.
      value_ = value_.is_sparse() && !gradient.is_sparse() ? gradient.add(value_) : value_.add(gradient);
      own_ = true;
    }
  }

  at::Tensor over(double count) { return own_ && is_dense_real(value_) ? value_.div_(count) : value_.div(count); }

 private:
  static bool is_dense_real(const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && tensor.is_floating_point();
  }

  /// Whether an addition in place gives the tensor that an addition into a new one gives.
  bool takes(const at::Tensor& gradient) const {
    return own_ && is_dense_real(value_) && is_dense_real(gradient) && gradient.scalar_type() == value_.scalar_type() &&
           gradient.sizes() == value_.sizes();
  }

  at::Tensor value_;
  bool own_ = false;
};

at::Tensor mean_of(std::span<const Gradients> contributions, std::size_t parameter) {
  std::optional<Sum> sum;
  for (const Gradients& gradients : contributions) {
    const at::Tensor& gradient = gradients[parameter];
    if (!gradient.defined()) continue;
    if (!sum) sum.emplace();
    sum->add(gradient);
  }
  return sum ? sum->over(static_cast<double>(contributions.size())) : at::Tensor();
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
