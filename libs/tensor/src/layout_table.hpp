/// The tensor table in memory, between its bytes (table_format.cpp) and tensors (encode.cpp, build.cpp).
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/tensor/codec.hpp"

namespace caftan::tensor::detail {

/// Numbers are on the wire.
enum class Kind : std::uint8_t {
  strided = 0,
  quantized = 1,   ///< quantized per tensor; one part: the integer representation
  sparse_coo = 2,  ///< parts: values, indices
  sparse_csr = 3,  ///< sparse_csr and the three kinds below: values, compressed indices, plain indices
  sparse_csc = 4,
  sparse_bsr = 5,
  sparse_bsc = 6,
  quantized_channels = 7,  ///< parts: integer representation, scales, zero points
};
constexpr bool is_sparse(Kind kind) noexcept { return kind >= Kind::sparse_coo && kind <= Kind::sparse_bsc; }
constexpr std::size_t parts_of(Kind kind) noexcept {
  return kind <= Kind::quantized ? 1 : kind == Kind::sparse_coo ? 2 : 3;
}
/// Returns whether the zero point of integers of this dtype may be `zero_point`.
bool is_zero_point(std::int64_t zero_point, at::ScalarType dtype) noexcept;

inline constexpr std::size_t kMostDims = 64;
inline constexpr std::uint32_t kNoStorage = 0xffffffff;
/// Each storage starts at a multiple of this in its segment: aligned for any dtype, and for vector loads.
inline constexpr std::uint64_t kStorageAlignment = 64;

/// A range of bytes that becomes a storage.
struct StorageEntry {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;  ///< bytes from the start of the segment
  std::uint64_t bytes = 0;
};

/// A strided tensor: a whole one, or a component of a sparse one.
struct Part {
  at::ScalarType dtype = at::ScalarType::Undefined;
  std::uint8_t dims = 0;
  std::uint32_t dims_at = 0;           ///< in LayoutTable::dims: sizes, then strides
  std::uint32_t storage = kNoStorage;  ///< none for a tensor without elements
  std::int64_t offset = 0;             ///< elements from the start of the storage
};

struct Entry {
  bool defined = false;
  bool requires_grad = false;
  bool recorded = false;
  bool coalesced = false;
  Kind kind = Kind::strided;
  std::uint8_t dims = 0;         ///< sparse only: number of dimensions of the whole tensor
  std::uint32_t dims_at = 0;     ///< sparse only: sizes
  std::uint32_t first_part = 0;  ///< parts_of(kind) of them
  double scale = 1;              ///< quantized per tensor
  std::int64_t zero_point = 0;   ///< quantized per tensor
  std::uint8_t axis = 0;         ///< quantized per channel: the dimension of the channels
};

/// The content of a tensor table. For a message with one or two small tensors it allocates no memory.
struct LayoutTable {
  c10::SmallVector<std::uint64_t, 2> segments;  ///< bytes of each
  c10::SmallVector<StorageEntry, 2> storages;   ///< ordered by segment, then offset; storages do not overlap
  c10::SmallVector<Entry, 2> tensors;
  c10::SmallVector<Part, 2> parts;
  c10::SmallVector<std::int64_t, 16> dims;

  c10::IntArrayRef sizes(const Part& part) const { return {dims.data() + part.dims_at, part.dims}; }
  c10::IntArrayRef strides(const Part& part) const { return {dims.data() + part.dims_at + part.dims, part.dims}; }
  c10::IntArrayRef sizes(const Entry& entry) const { return {dims.data() + entry.dims_at, entry.dims}; }
};

/// Returns the table's bytes.
base::Reused<wire::Bytes> write_table(const LayoutTable& table);
/// Reads and checks a table. Throws wire::DecodeError.
LayoutTable read_table(wire::ByteView bytes, const TensorLayout::Limits& limits);

/// Returns the number of a dtype on the wire; nothing for a dtype that does not travel. Never use a number for a second
/// dtype.
std::optional<std::uint8_t> dtype_code(at::ScalarType dtype) noexcept;
std::optional<at::ScalarType> dtype_of_code(std::uint8_t code) noexcept;
/// Returns "float32" and the like.
std::string_view dtype_name(at::ScalarType dtype) noexcept;

/// Where the elements of a strided tensor lie, in elements from the start of its storage.
struct Extent {
  std::int64_t numel = 0;     ///< product of the sizes
  std::int64_t distinct = 0;  ///< numel without the dimensions of stride 0
  std::int64_t last = 0;      ///< the highest element addressed, when numel > 0
};
/// Returns the extent in checked arithmetic; nothing for a negative number or an overflow of 63 bits, in bytes too.
std::optional<Extent> extent_of(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                                std::size_t itemsize) noexcept;

/// Writes the strides of a contiguous tensor of these sizes. Precondition: extent_of(sizes, ...) exists.
void contiguous_strides(c10::IntArrayRef sizes, std::int64_t* strides) noexcept;
/// Returns whether the strides are those that `contiguous_strides` writes. Precondition: that of `contiguous_strides`.
bool are_contiguous(c10::IntArrayRef sizes, c10::IntArrayRef strides) noexcept;

/// Returns whether each element of a bool tensor is a byte 0 or 1. `data` is the first element; all addressed bytes
/// must be readable. Takes time in proportion to the bytes, however the strides overlap.
bool bools_are_valid(const std::uint8_t* data, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                     const Extent& extent) noexcept;

}  // namespace caftan::tensor::detail
