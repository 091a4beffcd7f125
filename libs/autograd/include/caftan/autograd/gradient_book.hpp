/// `GradientBook`: the gradients of leaves, outside their `.grad`. A pass stages one; when the pass is decided ok it is
/// merged into the book of its context (DA-8), which accumulates over passes as torch accumulates in `.grad`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace caftan::autograd {

/// Threads: one at a time. The book has no lock: its owner keeps threads apart.
class GradientBook {
 public:
  /// A leaf and the sum of its gradients.
  struct Entry {
    at::Tensor leaf;      ///< held, because its node in the graph is not
    at::Tensor gradient;  ///< sizes, dtype and device of the leaf; its layout, or sparse
  };

  /// Adds a gradient to what `leaf` has. The first one is taken over when it has no other reference, else copied; what
  /// is booked owns its memory, never part of a message's. A later one is added in place only while there is no other
  /// reference to the booked tensor or its memory: a tensor handed out earlier keeps its values.
  /// @param gradient  defined, detached or not
  /// Throws what libtorch throws (out of memory, shapes that do not fit). Grad mode must be off.
  void add(const at::Tensor& leaf, at::Tensor&& gradient);

  /// Adds every entry of `staged`, in its order. Errors as add.
  void merge(GradientBook&& staged);

  /// Returns the gradient of `leaf`, undefined when it has none.
  at::Tensor of(const at::Tensor& leaf) const;

  /// Returns each leaf with its gradient, in the order in which the leaves got their first gradient.
  std::span<const Entry> entries() const noexcept { return entries_; }
  /// Returns whether no leaf has a gradient.
  bool empty() const noexcept { return entries_.empty(); }
  /// Bytes of all gradients.
  std::uint64_t bytes() const;

 private:
  std::vector<Entry> entries_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_;
};

/// Returns the bytes of a gradient's values, and indices where it is sparse; 0 for an undefined one.
std::uint64_t gradient_bytes(const at::Tensor& gradient);

}  // namespace caftan::autograd
