/// The layers that the models are made of: torch::nn::Module subclasses with the parameters of torch's own, under the
/// same names, whose first values are a function of a key (caftan/base/keyed_random.hpp) and not of torch's
/// process-wide generator. Threads of all: one at a time.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "caftan/base/keyed_random.hpp"

namespace caftan::models {

/// The keys of a model's first parameters, one after the other in the order in which they are made.
class Keys {
 public:
  explicit Keys(std::uint64_t seed) : seed_(seed) {}
  base::RandomKey next() noexcept { return {.seed = seed_, .context = next_++}; }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

/// Sizes of a convolution with square kernels.
struct ConvShape {
  std::int64_t in = 1;   ///< channels
  std::int64_t out = 1;  ///< channels
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// How the weight of a convolution begins.
enum class ConvStart {
  plain,    ///< as torch.nn.Conv2d: weight and bias uniform in +-1/sqrt(inputs of an output)
  residual  ///< as torchvision's ResNet: normal, variance 2/(outputs of an input), without a bias
};

/// Source: torch.nn.Conv2d.
class Conv2d : public torch::nn::Module {
 public:
  Conv2d(const ConvShape& shape, ConvStart start, Keys& keys);
  /// @param input  [B, in, H, W] @return [B, out, H', W']
  at::Tensor forward(const at::Tensor& input) const;

 private:
  ConvShape shape_;
  at::Tensor weight_;
  at::Tensor bias_;  // undefined: none
};

/// Source: torch.nn.BatchNorm2d with its defaults. In training mode it normalises by the batch and moves its running
/// statistics, in evaluation mode it normalises by these.
class BatchNorm2d : public torch::nn::Module {
 public:
  explicit BatchNorm2d(std::int64_t channels);
  /// @param input  [B, channels, H, W] @return of the same sizes
  at::Tensor forward(const at::Tensor& input);
  /// Says whether forwards in training mode move the running statistics: not where a forward is run a second time for
  /// the same input. The results are the same bits.
  void track(bool on) noexcept { is_tracking_ = on; }

 private:
  bool is_tracking_ = true;
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor running_mean_;
  at::Tensor running_var_;
  at::Tensor num_batches_tracked_;
};

/// Source: torch.nn.Linear.
class Linear : public torch::nn::Module {
 public:
  Linear(std::int64_t in, std::int64_t out, Keys& keys);
  /// @param input  [B, in] @return [B, out]
  at::Tensor forward(const at::Tensor& input) const;

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

}  // namespace caftan::models
