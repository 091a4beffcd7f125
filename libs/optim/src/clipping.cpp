#include "caftan/optim/clipping.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/view_as_real.h>

#include <array>
#include <cmath>

namespace caftan::optim {
namespace {

/// Adds into several sums side by side, because one sum alone would wait for each addition. Which element goes to which
/// sum does not depend on the number of threads.
template <class Number>
double sum_of_squares(const Number* at, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(at[i + lane]);
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  for (; i < count; ++i) {
    const auto value = static_cast<double>(at[i]);
    sums[static_cast<std::size_t>(i % kLanes)] += value * value;
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

double squared_norm_of(const at::Tensor& gradient) {
  at::Tensor values = gradient.is_sparse() ? gradient.coalesce().values() : gradient;
  if (values.is_complex()) values = at::view_as_real(values);
  values = values.contiguous();
  if (values.scalar_type() == at::kFloat) return sum_of_squares(values.const_data_ptr<float>(), values.numel());
  values = values.to(at::kDouble);
  return sum_of_squares(values.const_data_ptr<double>(), values.numel());
}

}  // namespace

double squared_norm(std::span<const at::Tensor> gradients) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (const at::Tensor& gradient : gradients) {
    if (gradient.defined()) sum += squared_norm_of(gradient);
  }
  return sum;
}

double clip_scale(double squared_norm, double max_norm) noexcept {
  const double scale = max_norm / (std::sqrt(squared_norm) + 1e-6);
  // std::min(1.0, scale) would turn a norm that is not a number into 1.
  return scale > 1 ? 1 : scale;
}

std::vector<at::Tensor> scaled(std::span<const at::Tensor> gradients, double scale) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> result(gradients.begin(), gradients.end());
  if (scale == 1) return result;
  for (at::Tensor& gradient : result) {
    if (gradient.defined()) gradient = gradient.mul(scale);
  }
  return result;
}

std::vector<at::Tensor> clipped_by_value(std::span<const at::Tensor> gradients, double limit) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> result(gradients.begin(), gradients.end());
  for (at::Tensor& gradient : result) {
    if (!gradient.defined()) continue;
    if (!gradient.is_sparse()) {
      gradient = at::clamp(gradient, -limit, limit);
      continue;
    }
    const at::Tensor sum = gradient.coalesce();
    gradient = at::sparse_coo_tensor(sum.indices(), at::clamp(sum.values(), -limit, limit), sum.sizes(), sum.options(),
                                     /*is_coalesced=*/true);
  }
  return result;
}

}  // namespace caftan::optim
