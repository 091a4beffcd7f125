#include "cartpole_learning/adam.hpp"

#include <cmath>
#include <utility>

namespace caftan::cartpole {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr float kEpsilon = 1e-8F;

}  // namespace

Adam::Adam(std::vector<at::Tensor> parameters, double learning_rate)
    : parameters_(std::move(parameters)), learning_rate_(learning_rate) {
  for (const at::Tensor& parameter : parameters_) {
    means_.emplace_back(static_cast<std::size_t>(parameter.numel()), 0.0F);
    variances_.emplace_back(static_cast<std::size_t>(parameter.numel()), 0.0F);
  }
}

void Adam::step(std::span<const at::Tensor> gradients) {
  ++steps_;
  const auto count = static_cast<double>(steps_);
  const auto step_size = static_cast<float>(learning_rate_ / (1 - std::pow(kBeta1, count)));
  const auto variance_root = static_cast<float>(std::sqrt(1 - std::pow(kBeta2, count)));
  constexpr auto kOld1 = static_cast<float>(kBeta1);
  constexpr auto kNew1 = static_cast<float>(1 - kBeta1);
  constexpr auto kOld2 = static_cast<float>(kBeta2);
  constexpr auto kNew2 = static_cast<float>(1 - kBeta2);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const at::Tensor contiguous = gradients[i].contiguous();
    const float* gradient = contiguous.const_data_ptr<float>();
    float* value = parameters_[i].mutable_data_ptr<float>();
    float* mean = means_[i].data();
    float* variance = variances_[i].data();
    for (std::size_t j = 0; j < means_[i].size(); ++j) {
      mean[j] = kOld1 * mean[j] + kNew1 * gradient[j];
      variance[j] = kOld2 * variance[j] + kNew2 * gradient[j] * gradient[j];
      value[j] -= step_size * mean[j] / (std::sqrt(variance[j]) / variance_root + kEpsilon);
    }
    parameters_[i].unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace caftan::cartpole
