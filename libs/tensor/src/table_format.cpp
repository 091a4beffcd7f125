/// Bytes of the tensor table. All numbers are LEB128 unless said otherwise.
///
///   version (1 byte) · segments: count, bytes of each · storages: count, each {segment, offset, bytes}
///   tensors: count, each
///     flags (1 byte): 1 defined, 2 requires_grad, 4 recorded, 8 coalesced, kind << 4
///     quantized per tensor: scale (8 bytes, bits of a double), zero point (8 bytes)
///     quantized per channel: axis
///     sparse: dims, sizes
///     parts (1, 2 or 3 by kind), each
///       dtype (1 byte) · dims << 1 | has strides · sizes · strides · storage + 1 (0 = none) · offset in elements
///
/// Version 2 has what version 1 has not: quantized per channel, and strides of quantized tensors. A table without these
/// is written as version 1, which older builds read (ADR 8).
#include <array>
#include <cmath>

#include "caftan/wire/archive.hpp"
#include "layout_table.hpp"

namespace caftan::tensor::detail {
namespace {

using wire::DecodeError;

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kVersionOfQuantized = 2;
enum Flag : std::uint8_t { kDefined = 1, kRequiresGrad = 2, kRecorded = 4, kCoalesced = 8 };

bool has_strides(const LayoutTable& table, const Part& part) {
  return !are_contiguous(table.sizes(part), table.strides(part));
}

std::uint8_t version_of(const LayoutTable& table) {
  for (const Entry& entry : table.tensors) {
    if (!entry.defined) continue;
    if (entry.kind == Kind::quantized_channels) return kVersionOfQuantized;
    if (entry.kind == Kind::quantized && has_strides(table, table.parts[entry.first_part])) return kVersionOfQuantized;
  }
  return kVersion;
}

void write_part(wire::OutArchive& to, const LayoutTable& table, const Part& part) {
  const c10::IntArrayRef sizes = table.sizes(part);
  const bool strided = has_strides(table, part);
  to << *dtype_code(part.dtype);
  to.save_count(std::uint64_t{part.dims} << 1 | (strided ? 1 : 0));
  for (const std::int64_t size : sizes) to.save_count(static_cast<std::uint64_t>(size));
  if (strided) {
    for (const std::int64_t stride : table.strides(part)) to.save_count(static_cast<std::uint64_t>(stride));
  }
  to.save_count(part.storage == kNoStorage ? 0 : std::uint64_t{part.storage} + 1);
  to.save_count(static_cast<std::uint64_t>(part.offset));
}

std::int64_t read_int64(wire::InArchive& from) {
  const std::uint64_t number = from.load_number();
  if (number > static_cast<std::uint64_t>(INT64_MAX)) throw DecodeError("a size or stride beyond 63 bits");
  return static_cast<std::int64_t>(number);
}

std::uint8_t read_sizes(wire::InArchive& from, LayoutTable& table, std::uint64_t dims) {
  if (dims > kMostDims) throw DecodeError("more than 64 dimensions");
  for (std::uint64_t i = 0; i < dims; ++i) table.dims.push_back(read_int64(from));
  return static_cast<std::uint8_t>(dims);
}

void read_part(wire::InArchive& from, LayoutTable& table, bool may_have_strides) {
  std::uint8_t code = 0;
  from >> code;
  const std::optional<at::ScalarType> dtype = dtype_of_code(code);
  if (!dtype) throw DecodeError("unknown dtype");
  const std::uint64_t header = from.load_number();
  Part part;
  part.dtype = *dtype;
  part.dims_at = static_cast<std::uint32_t>(table.dims.size());
  part.dims = read_sizes(from, table, header >> 1);
  const bool has_strides = (header & 1) != 0;
  if (has_strides && !may_have_strides) throw DecodeError("strides where none can be");
  for (std::size_t i = 0; i < part.dims; ++i) table.dims.push_back(has_strides ? read_int64(from) : 0);

  const std::uint64_t storage = from.load_number();
  if (storage > table.storages.size()) throw DecodeError("a tensor without its storage");
  part.storage = storage == 0 ? kNoStorage : static_cast<std::uint32_t>(storage - 1);
  part.offset = read_int64(from);

  const std::size_t itemsize = c10::elementSize(part.dtype);
  const c10::IntArrayRef sizes = table.sizes(part);
  // Strides are still 0 where they are not given, which checks the sizes before they are multiplied into strides.
  if (!extent_of(sizes, table.strides(part), part.offset, itemsize)) throw DecodeError("a tensor too large");
  if (!has_strides) contiguous_strides(sizes, table.dims.data() + part.dims_at + part.dims);
  const std::optional<Extent> extent = extent_of(sizes, table.strides(part), part.offset, itemsize);
  if (!extent) throw DecodeError("a tensor too large");
  if (extent->numel == 0) {
    if (part.storage != kNoStorage || part.offset != 0) throw DecodeError("storage of a tensor without elements");
  } else {
    if (part.storage == kNoStorage) throw DecodeError("a tensor without its storage");
    const std::uint64_t end = (static_cast<std::uint64_t>(extent->last) + 1) * itemsize;
    if (end > table.storages[part.storage].bytes) throw DecodeError("a tensor beyond the end of its storage");
  }
  table.parts.push_back(part);
}

void check_quantized(const LayoutTable& table, const Entry& entry) {
  const at::ScalarType dtype = table.parts[entry.first_part].dtype;
  if (dtype != at::ScalarType::Char && dtype != at::ScalarType::Byte && dtype != at::ScalarType::Int) {
    throw DecodeError("a quantized tensor of another dtype");
  }
  if (entry.kind == Kind::quantized) {
    if (!std::isfinite(entry.scale) || entry.scale <= 0 || !is_zero_point(entry.zero_point, dtype)) {
      throw DecodeError("a bad scale or zero point");
    }
    return;
  }
  const Part& values = table.parts[entry.first_part];
  const Part& scales = table.parts[entry.first_part + 1];
  const Part& zero_points = table.parts[entry.first_part + 2];
  if (scales.dtype != at::ScalarType::Double || zero_points.dtype != at::ScalarType::Long) {
    throw DecodeError("scales or zero points of another dtype");
  }
  if (entry.axis >= values.dims) throw DecodeError("channels along a dimension that is not there");
  const c10::IntArrayRef channels(&table.sizes(values)[entry.axis], 1);
  if (table.sizes(scales) != channels || table.sizes(zero_points) != channels) {
    throw DecodeError("another number of scales or zero points than of channels");
  }
}

void read_tensor(wire::InArchive& from, LayoutTable& table, std::uint8_t version) {
  std::uint8_t flags = 0;
  from >> flags;
  Entry entry;
  entry.defined = (flags & kDefined) != 0;
  entry.requires_grad = (flags & kRequiresGrad) != 0;
  entry.recorded = (flags & kRecorded) != 0;
  entry.coalesced = (flags & kCoalesced) != 0;
  if (!entry.defined) {
    if (flags != 0) throw DecodeError("an undefined tensor with properties");
    table.tensors.push_back(entry);
    return;
  }
  const Kind last = version == kVersion ? Kind::sparse_bsc : Kind::quantized_channels;
  if ((flags >> 4) > static_cast<std::uint8_t>(last)) throw DecodeError("an unknown kind of tensor");
  entry.kind = static_cast<Kind>(flags >> 4);
  if (entry.coalesced && entry.kind != Kind::sparse_coo) throw DecodeError("coalesced, but not sparse");
  if (entry.kind == Kind::quantized) from >> entry.scale >> entry.zero_point;
  if (entry.kind == Kind::quantized_channels) {
    const std::uint64_t axis = from.load_number();
    if (axis >= kMostDims) throw DecodeError("channels along a dimension that is not there");
    entry.axis = static_cast<std::uint8_t>(axis);
  }
  if (is_sparse(entry.kind)) {
    entry.dims_at = static_cast<std::uint32_t>(table.dims.size());
    entry.dims = read_sizes(from, table, from.load_number());
    const std::array<std::int64_t, kMostDims> none{};
    if (!extent_of(table.sizes(entry), {none.data(), entry.dims}, 0, 16)) throw DecodeError("a tensor too large");
  }
  entry.first_part = static_cast<std::uint32_t>(table.parts.size());
  const bool quantized = entry.kind == Kind::quantized || entry.kind == Kind::quantized_channels;
  const bool first_may_have_strides = entry.kind == Kind::strided || (quantized && version != kVersion);
  for (std::size_t i = 0; i < parts_of(entry.kind); ++i) read_part(from, table, i == 0 && first_may_have_strides);
  if (quantized) check_quantized(table, entry);

  const at::ScalarType dtype = table.parts[entry.first_part].dtype;
  const bool differentiable = !quantized && (c10::isFloatingType(dtype) || c10::isComplexType(dtype));
  if (entry.requires_grad && !differentiable) throw DecodeError("requires_grad of a dtype without gradients");
  if (entry.recorded && !entry.requires_grad) throw DecodeError("recorded, but requires no grad");
  table.tensors.push_back(entry);
}

void read_storages(wire::InArchive& from, LayoutTable& table, const TensorLayout::Limits& limits) {
  const std::size_t count = from.load_count(3);
  if (count > 3 * limits.max_tensors) throw DecodeError("more storages than tensors need", Errc::limit_exceeded);
  StorageEntry previous;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t segment = from.load_number();
    if (segment >= table.segments.size()) throw DecodeError("a storage without its segment");
    const StorageEntry storage{static_cast<std::uint32_t>(segment), from.load_number(), from.load_number()};
    const std::uint64_t size = table.segments[segment];
    if (storage.bytes == 0 || storage.bytes > size || storage.offset > size - storage.bytes) {
      throw DecodeError("a storage beyond the end of its segment");
    }
    if (storage.offset % kStorageAlignment != 0) throw DecodeError("a storage that is not aligned");
    const bool follows = i == 0 || storage.segment > previous.segment ||
                         (storage.segment == previous.segment && storage.offset >= previous.offset + previous.bytes);
    if (!follows) throw DecodeError("storages that overlap or are out of order");
    table.storages.push_back(previous = storage);
  }
}

void write_tensor(wire::OutArchive& to, const LayoutTable& table, const Entry& entry) {
  if (!entry.defined) {
    to << std::uint8_t{0};
    return;
  }
  to << static_cast<std::uint8_t>(kDefined | (entry.requires_grad ? kRequiresGrad : 0) |
                                  (entry.recorded ? kRecorded : 0) | (entry.coalesced ? kCoalesced : 0) |
                                  (static_cast<int>(entry.kind) << 4));
  if (entry.kind == Kind::quantized) to << entry.scale << entry.zero_point;
  if (entry.kind == Kind::quantized_channels) to.save_count(entry.axis);
  if (is_sparse(entry.kind)) {
    to.save_count(entry.dims);
    for (const std::int64_t size : table.sizes(entry)) to.save_count(static_cast<std::uint64_t>(size));
  }
  for (std::size_t i = 0; i < parts_of(entry.kind); ++i) write_part(to, table, table.parts[entry.first_part + i]);
}

}  // namespace
}  // namespace caftan::tensor::detail

/// The whole table is one value of the archive, so that it is written in one go.
template <>
struct caftan::wire::Codec<caftan::tensor::detail::LayoutTable> {
  static void save(OutArchive& to, const caftan::tensor::detail::LayoutTable& table) {
    to << caftan::tensor::detail::version_of(table);
    to.save_count(table.segments.size());
    for (const std::uint64_t size : table.segments) to.save_count(size);
    to.save_count(table.storages.size());
    for (const auto& storage : table.storages) {
      to.save_count(storage.segment);
      to.save_count(storage.offset);
      to.save_count(storage.bytes);
    }
    to.save_count(table.tensors.size());
    for (const auto& entry : table.tensors) caftan::tensor::detail::write_tensor(to, table, entry);
  }
};

namespace caftan::tensor::detail {

base::Reused<wire::Bytes> write_table(const LayoutTable& table) {
  base::Reused<wire::Bytes> bytes;
  bytes.reuse();
  bytes.reserve(32 + 24 * table.tensors.size() + 4 * table.dims.size());
  wire::OutArchive to(bytes);
  to << table;
  return bytes;
}

LayoutTable read_table(wire::ByteView bytes, const TensorLayout::Limits& limits) {
  wire::InArchive from(bytes);
  LayoutTable table;
  std::uint8_t version = 0;
  from >> version;
  if (version != kVersion && version != kVersionOfQuantized) throw DecodeError("another version of the tensor table");
  const std::size_t segments = from.load_count();
  if (segments > 3 * limits.max_tensors) throw DecodeError("more tensors than allowed", Errc::limit_exceeded);
  std::uint64_t left = limits.max_bytes;
  table.segments.reserve(segments);
  for (std::size_t i = 0; i < segments; ++i) {
    const std::uint64_t size = from.load_number();
    if (size == 0) throw DecodeError("an empty segment");
    if (size > left) throw DecodeError("more tensor bytes than allowed", Errc::limit_exceeded);
    left -= size;
    table.segments.push_back(size);
  }
  read_storages(from, table, limits);
  const std::size_t tensors = from.load_count();
  if (tensors > limits.max_tensors) throw DecodeError("more tensors than allowed", Errc::limit_exceeded);
  table.tensors.reserve(tensors);
  table.parts.reserve(tensors);
  for (std::size_t i = 0; i < tensors; ++i) read_tensor(from, table, version);
  if (from.remaining() > 0) throw DecodeError("bytes left over in the tensor table");
  return table;
}

}  // namespace caftan::tensor::detail
