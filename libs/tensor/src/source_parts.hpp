/// The first half of encoding: which strided tensors on the CPU stand for a tensor, or why it cannot travel.
#pragma once

#include <string>

#include "layout_table.hpp"

namespace caftan::tensor::detail {

/// A strided CPU tensor whose memory will be sent, and where it lies.
struct Source {
  at::Tensor tensor;  ///< keeps the memory alive; conj, neg and zero are resolved
  Extent extent;
  /// The tensor of the message that holds this memory, too; null = the memory is a copy made here.
  const at::Tensor* given = nullptr;
};
using Sources = c10::SmallVector<Source, 2>;

/// Appends the parts of `tensor` to `sources` and returns its entry; `first_part` is left to the caller.
/// Errors: unsupported, its text says why, without the position.
Result<Entry> take_apart(const at::Tensor& tensor, Sources& sources);

/// Returns "argument tensor 2 (float32 sparse_csr)".
std::string describe(std::size_t position, const at::Tensor& tensor);

}  // namespace caftan::tensor::detail
