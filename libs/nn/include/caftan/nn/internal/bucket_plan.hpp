/// `BucketPlan`: which gradients of a replica travel together, and where in their bucket they are: a function of the
/// parameters alone, so the same at all replicas (docs/protocols/replicated.md, RP-3).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace caftan::nn {

class BucketPlan {
 public:
  struct Bucket {
    std::vector<std::size_t> leaves;  ///< in the order of their values in the bucket
    at::ScalarType dtype = at::kFloat;
    std::int64_t size = 0;  ///< values; 0 for a sparse one
    bool is_sparse = false;
  };
  struct Place {
    std::size_t bucket = 0;
    std::int64_t start = 0;  ///< first value in the bucket
  };

  BucketPlan() = default;
  /// @param leaves  dense, in the module's order
  /// @param is_sparse  of each leaf's gradient
  /// @param bytes  of a bucket, > 0
  BucketPlan(const std::vector<at::Tensor>& leaves, const std::vector<bool>& is_sparse, std::uint64_t bytes);

  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  const Place& place_of(std::size_t leaf) const noexcept { return places_[leaf]; }

 private:
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;
};

}  // namespace caftan::nn
