/// The tensors of a value. They are taken out when the value is encoded and put back when it is decoded, so that their
/// data may travel apart from the bytes: attach a `TensorSink` to the archive that writes, a `TensorSource` to the one
/// that reads.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "caftan/tensor/tensor.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::tensor {

/// Companion of an OutArchive: collects the tensors of a value. The same tensor twice is one entry.
class TensorSink {
 public:
  /// Appends to `to`, which must outlive the sink. Tensors that are in `to` already keep their indices; they are not
  /// compared with new ones.
  explicit TensorSink(std::vector<at::Tensor>& to) : to_(to), first_(to.size()) {}
  /// Returns the index of `tensor` in the list.
  std::uint64_t add(const at::Tensor& tensor);

 private:
  std::vector<at::Tensor>& to_;
  std::size_t first_;
  std::unordered_map<const void*, std::uint64_t> index_;  ///< used once there are many
};

/// Companion of an InArchive: gives the tensors of a value by index.
class TensorSource {
 public:
  /// `tensors` must outlive the source.
  explicit TensorSource(std::span<const at::Tensor> tensors) noexcept : tensors_(tensors) {}
  /// Returns the tensor at `index`. Throws DecodeError if there is none.
  const at::Tensor& at(std::uint64_t index) const;

 private:
  std::span<const at::Tensor> tensors_;
};

}  // namespace caftan::tensor

namespace caftan::wire {

/// Writes a tensor as its index among the tensors that travel beside the bytes. Throws EncodeError (unsupported) where
/// no TensorSink is attached, as in an archive with a `wire::SelfContained`.
template <>
struct Codec<at::Tensor> {
  static void save(OutArchive& to, const at::Tensor& tensor);
  static void load(InArchive& from, at::Tensor& tensor);
};

}  // namespace caftan::wire
