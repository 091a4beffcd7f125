/// `BucketHooks`: hands on the gradients of a bucket as soon as a backward pass has the last of them, while the pass
/// goes on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "ps_bench/shapes.hpp"

namespace caftan::ps_bench {

/// Threads: one at a time. Source: the communication hooks of torch.nn.parallel.DistributedDataParallel.
class BucketHooks {
 public:
  /// Gets the gradients of one bucket, in its order; sparse ones are coalesced.
  using Full = std::function<void(std::size_t bucket, std::vector<at::Tensor> gradients)>;

  /// @param parameters  leaves; they have hooks as long as this object lives
  BucketHooks(const std::vector<at::Tensor>& parameters, std::vector<Bucket> buckets, Full full);
  ~BucketHooks();
  BucketHooks(const BucketHooks&) = delete;
  BucketHooks& operator=(const BucketHooks&) = delete;

  /// Computes the gradients of a scalar, and calls `full` once for each bucket, in this thread. `.grad` of the
  /// parameters stays as it is. Precondition: the loss depends on every parameter.
  void backward(const at::Tensor& loss);

 private:
  /// What a bucket has of the backward pass that runs.
  struct Filling {
    std::vector<at::Tensor> gradients;
    std::size_t missing = 0;
  };

  void take(std::size_t bucket, std::size_t place, const at::Tensor& gradient);

  std::vector<at::Tensor> parameters_;
  std::vector<Bucket> buckets_;
  Full full_;
  std::vector<Filling> filling_;
  std::vector<unsigned> hooks_;  ///< in the order of the buckets and their places
};

}  // namespace caftan::ps_bench
