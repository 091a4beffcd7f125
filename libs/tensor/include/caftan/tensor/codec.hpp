/// Tensors to a table and segments of bytes, and back. `encode_tensors` references large storage and copies small
/// tensors; the receiver reads the table with `TensorLayout::parse`, receives each segment straight into a block, and
/// `TensorLayout::build` makes the tensors own the blocks: no copy. The graph never travels, only bits about it.
///
/// Travels: strided CPU tensors of every dtype of whole bytes with their strides; sparse COO, CSR, CSC, BSR, BSC;
/// quantized ones with their strides, per tensor or per channel. Conjugated, negated and zero tensors are made real
/// first. Tensors of one message over one storage share a storage at the receiver too.
/// Of a storage only the range that the tensors touch travels. Where they use less than half of 8 KiB or more, and do
/// not reach into each other's ranges, each travels contiguous, its expanded dimensions expanded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/base/reused.hpp"
#include "caftan/tensor/tensor.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/internal/block_pool.hpp"
#include "caftan/wire/internal/segment.hpp"

namespace caftan::tensor {

/// Tensors as they travel: a table, and the memory that it describes.
struct EncodedTensors {
  base::Reused<wire::Bytes> table;
  /// The bytes of the tensors, in the order of TensorLayout::segment_sizes(). Large segments are the tensors' own
  /// memory and must not be modified before they are written; messages with less than 16 KiB of tensors are copies.
  base::Reused<std::vector<wire::Segment>> segments;
};

/// What to do with large memory that other code holds besides the message's tensors, and could write to.
enum class SharedMemory : std::uint8_t {
  reference,  ///< not copied: the caller ensures that no code writes the memory before it is sent
  copy,       ///< copied while encode_tensors runs, so later writes do not matter
};

/// Describes `tensors` for the wire. An undefined tensor travels as undefined.
/// @param recorded  empty, or one byte per tensor: 1 = the sender has recorded it for a backward pass. Kept only where
///                  the tensor requires grad.
/// @param shared  with `copy`, memory that only `tensors` hold (and the bases of views among them) is not copied
/// @param small  if not null: tensors of at most wire::kSmallBulk bytes in all are copied there, and their segment has
/// no
///               owner, so it is valid as long as `small` is neither changed nor destroyed
/// Errors: unsupported ("argument tensor 2 (float32 nested): ..."): a tensor that cannot travel; bad_arguments when
///         `recorded` has another length; limit_exceeded without memory for a copy.
/// Threads: any; the tensors must not be modified meanwhile.
Result<EncodedTensors> encode_tensors(std::span<const at::Tensor> tensors, std::span<const std::uint8_t> recorded = {},
                                      SharedMemory shared = SharedMemory::reference, wire::Bytes* small = nullptr);

/// A tensor as it arrived.
struct DecodedTensor {
  at::Tensor tensor;
  bool defined = false;
  /// Whether the sender's tensor required a gradient. Set on `tensor` (as a leaf) unless it is recorded, where the
  /// graph says it.
  bool requires_grad = false;
  bool recorded = false;
};

namespace detail {
struct LayoutTable;
}

/// The tensors that a table announces: dtypes, sizes, strides, offsets and their bounds, checked for consistency.
class TensorLayout {
 public:
  /// What a table may announce.
  struct Limits {
    std::uint64_t max_bytes = std::uint64_t{1} << 30;  ///< of all segments
    std::uint64_t max_tensors = 65536;
  };

  /// Errors: malformed_payload; limit_exceeded when more is announced than `limits` allow. Allocates in proportion to
  /// the table's bytes.
  static Result<TensorLayout> parse(wire::ByteView table, Limits limits);

  /// Returns the bytes of each segment, each > 0: what has to be received, and into how large a block.
  std::span<const std::uint64_t> segment_sizes() const noexcept;
  /// Returns the number of tensors that the table announces.
  std::size_t tensor_count() const noexcept;

  /// Makes the tensors, which own the blocks from then on. May be called once per set of blocks.
  /// @param blocks  one per segment, block i of segment_sizes()[i] bytes
  /// Errors: malformed_payload (bool bytes above 1, sparse indices out of range); bad_arguments when the blocks do not
  ///         fit the layout.
  Result<std::vector<DecodedTensor>> build(std::vector<wire::Block>&& blocks) const;

 private:
  explicit TensorLayout(std::shared_ptr<const detail::LayoutTable> table) noexcept : table_(std::move(table)) {}
  std::shared_ptr<const detail::LayoutTable> table_;
};

/// Makes the tensors of a table, as TensorLayout::parse and build do, and appends them to `tensors`; allocates nothing
/// but them. Where the sender has recorded any, `recorded` gets one byte per tensor. Errors: as TensorLayout::parse and
/// build.
Result<void> decode_tensors(wire::ByteView table, TensorLayout::Limits limits, std::vector<wire::Block>&& blocks,
                            std::vector<at::Tensor>& tensors, std::vector<std::uint8_t>& recorded);

}  // namespace caftan::tensor
