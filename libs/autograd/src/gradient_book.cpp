#include "caftan/autograd/gradient_book.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <utility>

#include "caftan/wire/internal/block_pool.hpp"
#include "owned_gradient.hpp"

namespace caftan::autograd {
namespace {

using torch::autograd::AccumulateGrad;

/// Returns whether the memory of a dense tensor has no more than `holders` references, so that no other tensor shares
/// it, and is no part of a larger block that would stay alive for it.
bool is_own_memory(const at::Tensor& tensor, std::size_t holders) {
  const c10::Storage& storage = tensor.storage();
  if (storage.use_count() > holders) return false;
  const auto deleter = storage.data_ptr().get_deleter();
  if (deleter == c10::GetCPUAllocator()->raw_deleter() || storage.nbytes() == 0) return true;
  return deleter == &wire::Block::give_back && storage.nbytes() == tensor.nbytes();
}

bool owns_memory(const at::Tensor& tensor) {
  // _indices() and _values() make a second tensor over the memory.
  if (tensor.is_sparse()) return is_own_memory(tensor._indices(), 2) && is_own_memory(tensor._values(), 2);
  // Compressed sparse gradients are always copies.
  return tensor.layout() != at::kStrided || is_own_memory(tensor, 1);
}

}  // namespace

at::Tensor owned_gradient(const at::Tensor& leaf, at::Tensor&& gradient) {
  at::Tensor owned;
  AccumulateGrad::accumulateGrad(leaf, owned, gradient, 1,
                                 [&owned](at::Tensor&& update) { owned = std::move(update); });
  gradient.reset();  // other references to the memory can be counted only without this one
  return owns_memory(owned) ? owned : owned.clone();
}

void GradientBook::add(const at::Tensor& leaf, at::Tensor&& gradient) {
  const auto [found, is_new] = index_.try_emplace(leaf.unsafeGetTensorImpl(), entries_.size());
  if (is_new) {
    entries_.push_back({leaf, owned_gradient(leaf, std::move(gradient))});
    return;
  }
  at::Tensor& booked = entries_[found->second].gradient;
  if (booked.use_count() > 1 || !owns_memory(booked)) booked = booked.clone();
  AccumulateGrad::accumulateGrad(leaf, booked, gradient, 1,
                                 [&booked](at::Tensor&& update) { booked = std::move(update); });
}

void GradientBook::merge(GradientBook&& staged) {
  staged.index_.clear();
  for (Entry& entry : std::exchange(staged.entries_, {})) add(entry.leaf, std::move(entry.gradient));
}

at::Tensor GradientBook::of(const at::Tensor& leaf) const {
  const auto found = index_.find(leaf.unsafeGetTensorImpl());
  return found == index_.end() ? at::Tensor() : entries_[found->second].gradient;
}

std::uint64_t GradientBook::bytes() const {
  std::uint64_t sum = 0;
  for (const Entry& entry : entries_) sum += gradient_bytes(entry.gradient);
  return sum;
}

std::uint64_t gradient_bytes(const at::Tensor& gradient) {
  if (!gradient.defined()) return 0;
  if (gradient.is_sparse()) return gradient._indices().nbytes() + gradient._values().nbytes();
  return gradient.layout() == at::kStrided ? gradient.nbytes() : gradient.values().nbytes();
}

}  // namespace caftan::autograd
