#include "caftan/nn/internal/bucket_plan.hpp"

namespace caftan::nn {

BucketPlan::BucketPlan(const std::vector<at::Tensor>& leaves, const std::vector<bool>& is_sparse, std::uint64_t bytes)
    : places_(leaves.size()) {
  for (std::size_t leaf = leaves.size(); leaf-- > 0;) {
    const at::Tensor& tensor = leaves[leaf];
    const auto width = static_cast<std::uint64_t>(tensor.element_size());
    const bool has_room = !buckets_.empty() && !buckets_.back().is_sparse && !is_sparse[leaf] &&
                          buckets_.back().dtype == tensor.scalar_type() &&
                          static_cast<std::uint64_t>(buckets_.back().size + tensor.numel()) * width <= bytes;
    if (!has_room) buckets_.push_back({{}, tensor.scalar_type(), 0, is_sparse[leaf]});
    Bucket& bucket = buckets_.back();
    places_[leaf] = {buckets_.size() - 1, bucket.size};
    bucket.leaves.push_back(leaf);
    if (!bucket.is_sparse) bucket.size += tensor.numel();
  }
}

}  // namespace caftan::nn
