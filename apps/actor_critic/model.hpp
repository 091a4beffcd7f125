/// The networks of the learner: policy and values as tensors that autograd records. The policy is that of policy.hpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "agents/policy.hpp"
#include "caftan/base/result.hpp"

namespace caftan::actor_critic {

/// What the policy says about actions that were taken.
struct ActionFacts {
  at::Tensor log_probabilities;  ///< [rows]
  at::Tensor entropy;            ///< a scalar, the mean over rows
};

/// Threads: one at a time.
class Model {
 public:
  /// @param seed  of the first parameters: orthogonal weights, biases 0. Source: PPO's usual start (Engstrom et al.,
  ///              arXiv 2005.12729)
  Model(const agents::PolicyShape& shape, std::uint64_t seed);

  const agents::PolicyShape& shape() const noexcept { return shape_; }
  /// Returns float32 leaves that require gradients: those of the policy in the order of its weights, then those of the
  /// values' network.
  const std::vector<at::Tensor>& parameters() const noexcept { return parameters_; }

  /// @param observations  [rows, observation], normalized
  /// @param actions       [rows] of dtype long, or [rows, outputs] of continuous ones
  ActionFacts judge(const at::Tensor& observations, const at::Tensor& actions) const;
  /// Returns the value of each observation, [rows]. @param observations  as for judge
  at::Tensor values(const at::Tensor& observations) const;

  /// Appends the policy's parameters to weights that begin with mean and scale of observations (policy.hpp).
  void append_policy(std::vector<float>& weights) const;

 private:
  at::Tensor run(const at::Tensor& observations, std::size_t first) const;

  agents::PolicyShape shape_;
  std::vector<at::Tensor> parameters_;
  std::size_t value_first_;  // the first parameter of the values' network
};

}  // namespace caftan::actor_critic
