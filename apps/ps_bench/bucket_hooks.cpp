#include "ps_bench/bucket_hooks.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

namespace caftan::ps_bench {

BucketHooks::BucketHooks(const std::vector<at::Tensor>& parameters, std::vector<Bucket> buckets, Full full)
    : parameters_(parameters), buckets_(std::move(buckets)), full_(std::move(full)), filling_(buckets_.size()) {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (std::size_t place = 0; place < buckets_[bucket].size(); ++place) {
      hooks_.push_back(parameters_[buckets_[bucket][place]].register_hook(
          [this, bucket, place](const at::Tensor& gradient) { take(bucket, place, gradient); }));
    }
  }
}

BucketHooks::~BucketHooks() {
  auto hook = hooks_.begin();
  for (const Bucket& bucket : buckets_) {
    for (const std::size_t parameter : bucket) parameters_[parameter].remove_hook(*hook++);
  }
}

void BucketHooks::backward(const at::Tensor& loss) {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    filling_[bucket] = {std::vector<at::Tensor>(buckets_[bucket].size()), buckets_[bucket].size()};
  }
  torch::autograd::grad({loss}, parameters_);
}

void BucketHooks::take(std::size_t bucket, std::size_t place, const at::Tensor& gradient) {
  Filling& filling = filling_[bucket];
  filling.gradients[place] = gradient.is_sparse() ? gradient.coalesce() : gradient;
  if (--filling.missing == 0) full_(bucket, std::exchange(filling.gradients, {}));
}

}  // namespace caftan::ps_bench
