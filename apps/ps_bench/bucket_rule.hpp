/// `BucketRule`: what a server makes of the gradients of one bucket. Plain rules without calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "caftan/base/result.hpp"
#include "ps_bench/config.hpp"
#include "ps_bench/shapes.hpp"

namespace caftan::ps_bench {

/// With a rule that averages, the gradients of all trainers for one batch are a round: `take` says when it is complete,
/// `finish` returns the mean. With the rule `immediate` each gradient completes a round of its own, and `finish`
/// returns the parameters after a step of it. Threads: one at a time.
class BucketRule {
 public:
  struct Options {
    Rule rule = Rule::average_batch;
    TrainerRange trainers{};  ///< that send gradients
    double lr = 0;            ///< of the rule immediate
  };

  /// @param shapes      of the bucket's parameters
  /// @param parameters  their values, for the rule immediate only; they are not modified
  BucketRule(const Options& options, std::vector<ParameterShape> shapes, std::vector<at::Tensor> parameters);

  /// Takes the gradients that a trainer has of a batch. Returns whether the round is complete: then call `finish`.
  /// Errors: bad_arguments (not one of these trainers, another batch than that of the open round, a second gradient in
  ///   one round, gradients of another bucket; nothing has changed then).
  Result<bool> take(std::uint32_t trainer, std::int64_t batch, std::vector<at::Tensor> gradients);

  /// Returns how many gradients the open round has.
  std::size_t arrived() const noexcept { return arrived_.size(); }

  /// Ends the round. Returns one tensor for each parameter, which no later call modifies: the mean of its gradients, a
  /// sparse one coalesced, or the parameter. Precondition: take has returned true.
  /// Errors: those of nn::gradient_mean.
  Result<std::vector<at::Tensor>> finish();

 private:
  Result<void> check(std::uint32_t trainer, std::int64_t batch, const std::vector<at::Tensor>& gradients) const;
  void add(std::vector<at::Tensor>&& gradients);
  Result<std::vector<at::Tensor>> mean();

  Options options_;
  std::vector<ParameterShape> shapes_;
  std::vector<at::Tensor> parameters_;
  std::int64_t batch_ = 0;                                 ///< of the open round
  std::set<std::uint32_t> arrived_;                        ///< trainers whose gradients the open round has
  std::map<std::uint32_t, std::vector<at::Tensor>> kept_;  ///< of each trainer; average_batch
  std::vector<at::Tensor> sums_;                           ///< average, and the gradient of immediate
};

}  // namespace caftan::ps_bench
