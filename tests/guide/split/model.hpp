// The model: two parts of plain torch code that know nothing of workers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tanh.h>

#include <vector>

class Encoder {
 public:
  at::Tensor forward(const at::Tensor& x) const { return at::tanh(at::linear(x, weight_)); }
  std::vector<at::Tensor> parameters() const { return {weight_}; }

 private:
  at::Tensor weight_ = at::linspace(-0.5, 0.5, 32).view({8, 4}).requires_grad_(true);
};

class Head {
 public:
  at::Tensor forward(const at::Tensor& code) const { return at::linear(code, weight_, bias_); }
  std::vector<at::Tensor> parameters() const { return {weight_, bias_}; }

 private:
  at::Tensor weight_ = at::linspace(0.3, -0.3, 8).view({1, 8}).requires_grad_(true);
  at::Tensor bias_ = at::linspace(0, 0, 1).requires_grad_(true);
};

inline at::Tensor inputs() { return at::linspace(-1, 1, 256).view({64, 4}); }
inline at::Tensor targets() { return inputs().pow(2).sum(1, true); }
