/// Adam over float32 CPU parameters, one pass over memory per parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace caftan::cartpole {

/// Threads: one at a time.
/// Source: torch.optim.Adam with its default betas (0.9, 0.999) and epsilon (1e-8), no weight decay, no amsgrad; Kingma
/// and Ba 2015, algorithm 1.
class Adam {
 public:
  /// @param parameters     float32, contiguous, on the CPU; shared with their owner
  /// @param learning_rate  > 0
  Adam(std::vector<at::Tensor> parameters, double learning_rate);

  /// Takes one step and bumps each parameter's version, so that the backward of an older graph fails instead of using
  /// the new values.
  /// @param gradients  one for each parameter, of its shape, float32; an undefined one leaves its parameter alone
  void step(std::span<const at::Tensor> gradients);

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<std::vector<float>> means_;      ///< first moments
  std::vector<std::vector<float>> variances_;  ///< second moments, uncentred
  double learning_rate_;
  std::int64_t steps_ = 0;
};

}  // namespace caftan::cartpole
