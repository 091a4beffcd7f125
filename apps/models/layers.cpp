#include "models/layers.hpp"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cmath>

#include "caftan/nn/fill_normal.hpp"
#include "caftan/nn/fill_uniform.hpp"

namespace caftan::models {
namespace {

at::Tensor make_uniform(at::IntArrayRef sizes, Keys& keys, double bound) {
  at::Tensor parameter = at::empty(sizes);
  nn::fill_uniform(parameter, keys.next(), -bound, bound);
  return parameter;
}

at::Tensor make_normal(at::IntArrayRef sizes, Keys& keys, double deviation) {
  at::Tensor parameter = at::empty(sizes);
  nn::fill_normal(parameter, keys.next(), 0, deviation);
  return parameter;
}

}  // namespace

Conv2d::Conv2d(const ConvShape& shape, ConvStart start, Keys& keys) : shape_(shape) {
  const std::array<std::int64_t, 4> sizes{shape.out, shape.in, shape.kernel, shape.kernel};
  const auto window = static_cast<double>(shape.kernel * shape.kernel);
  if (start == ConvStart::residual) {
    const double deviation = std::sqrt(2 / (static_cast<double>(shape.out) * window));
    weight_ = register_parameter("weight", make_normal(sizes, keys, deviation));
  } else {
    const double bound = 1 / std::sqrt(static_cast<double>(shape.in) * window);
    weight_ = register_parameter("weight", make_uniform(sizes, keys, bound));
    bias_ = register_parameter("bias", make_uniform({shape.out}, keys, bound));
  }
}

at::Tensor Conv2d::forward(const at::Tensor& input) const {
  return at::conv2d(input, weight_, bias_, {shape_.stride, shape_.stride}, {shape_.padding, shape_.padding});
}

BatchNorm2d::BatchNorm2d(std::int64_t channels)
    : weight_(register_parameter("weight", at::ones({channels}))),
      bias_(register_parameter("bias", at::zeros({channels}))),
      running_mean_(register_buffer("running_mean", at::zeros({channels}))),
      running_var_(register_buffer("running_var", at::ones({channels}))),
      num_batches_tracked_(register_buffer("num_batches_tracked", at::zeros({}, at::kLong))) {}

at::Tensor BatchNorm2d::forward(const at::Tensor& input) {
  constexpr double kMomentum = 0.1;
  constexpr double kEps = 1e-5;
  if (is_training() && !is_tracking_) {
    return at::batch_norm(input, weight_, bias_, {}, {}, true, kMomentum, kEps, false);
  }
  if (is_training()) num_batches_tracked_.add_(1);
  return at::batch_norm(input, weight_, bias_, running_mean_, running_var_, is_training(), kMomentum, kEps, false);
}

Linear::Linear(std::int64_t in, std::int64_t out, Keys& keys) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  weight_ = register_parameter("weight", make_uniform({out, in}, keys, bound));
  bias_ = register_parameter("bias", make_uniform({out}, keys, bound));
}

at::Tensor Linear::forward(const at::Tensor& input) const { return at::linear(input, weight_, bias_); }

}  // namespace caftan::models
