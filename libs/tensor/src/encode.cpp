#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "caftan/tensor/codec.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"
#include "caftan/wire/internal/out_frame.hpp"
#include "source_parts.hpp"

namespace caftan::tensor {
namespace {

using namespace detail;

/// Messages with fewer bytes of tensors are copied: that costs less than keeping track of the owners.
constexpr std::uint64_t kCopyMessage = 16384;
constexpr std::uint64_t kCopyStorage = 4096;
/// A range of at least this size, of which less than half is used, is sent as a compact copy.
constexpr std::uint64_t kCompactFrom = 8192;
/// The range of a storage that travels begins at a multiple of this, the size of the largest item of any dtype: so the
/// offset of each tensor in the range is a whole number of its items.
constexpr std::uint64_t kRangeAlignment = 16;

/// The range of bytes of one storage that the message's tensors use.
struct Range {
  const c10::StorageImpl* storage = nullptr;
  std::uint64_t begin = 0;  ///< bytes from the start of the storage
  std::uint64_t end = 0;
  std::uint64_t used = 0;  ///< how many different bytes of the range all its tensors use
  std::uint32_t number = 0;
  std::uint32_t first = kNoStorage;  ///< the first source over the range; the others follow in Encoder::next_in_range

  std::uint64_t size() const noexcept { return end - begin; }
  const std::byte* data() const noexcept { return static_cast<const std::byte*>(storage->data()) + begin; }
};

struct Encoder {
  Sources sources;
  c10::SmallVector<std::uint32_t, 4> range_of;       ///< per source
  c10::SmallVector<std::uint32_t, 4> next_in_range;  ///< for each source, the next one over the same range
  c10::SmallVector<Range, 4> ranges;
  LayoutTable table;

  void find_ranges();
  void compact_sparsely_used();
  /// Errors: limit_exceeded (no memory for a copy).
  Result<base::Reused<std::vector<wire::Segment>>> lay_out(SharedMemory shared, wire::Bytes* small_memory);
  void describe_parts();

 private:
  std::uint32_t range_number(const c10::StorageImpl* storage);
  void extend(std::size_t source);
  bool any_overlap(std::uint32_t range) const;
  void compact(std::uint32_t range);
  /// Returns whether something besides the tensors of the message, and the bases of views among them, holds the memory.
  bool is_held_elsewhere(std::uint32_t range) const;
  Result<wire::Segment> segment_of(std::uint32_t range, SharedMemory shared) const;
  wire::Segment gather(std::uint64_t size, c10::ArrayRef<std::uint32_t> small, wire::Bytes* small_memory) const;

  std::unordered_map<const c10::StorageImpl*, std::uint32_t> by_storage_;  ///< used once there are many
};

std::pair<std::uint64_t, std::uint64_t> bytes_of(const Source& source) {
  const std::uint64_t itemsize = source.tensor.itemsize();
  return {static_cast<std::uint64_t>(source.tensor.storage_offset()) * itemsize,
          (static_cast<std::uint64_t>(source.extent.last) + 1) * itemsize};
}

std::uint32_t Encoder::range_number(const c10::StorageImpl* storage) {
  constexpr std::size_t kScan = 8;
  const auto next = static_cast<std::uint32_t>(ranges.size());
  if (ranges.size() <= kScan) {
    for (std::uint32_t i = 0; i < next; ++i) {
      if (ranges[i].storage == storage) return i;
    }
  } else {
    if (by_storage_.empty()) {
      for (std::uint32_t i = 0; i < next; ++i) by_storage_.emplace(ranges[i].storage, i);
    }
    const auto [entry, is_new] = by_storage_.emplace(storage, next);
    if (!is_new) return entry->second;
  }
  ranges.push_back(Range{.storage = storage, .begin = UINT64_MAX});
  return next;
}

void Encoder::extend(std::size_t source) {
  Range& range = ranges[range_of[source]];
  const auto [begin, end] = bytes_of(sources[source]);
  range.begin = std::min(range.begin, begin / kRangeAlignment * kRangeAlignment);
  range.end = std::max(range.end, end);
  range.used += static_cast<std::uint64_t>(sources[source].extent.distinct) * sources[source].tensor.itemsize();
}

void Encoder::find_ranges() {
  range_of.assign(sources.size(), kNoStorage);
  ranges.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].extent.numel == 0) continue;
    range_of[i] = range_number(sources[i].tensor.storage().unsafeGetStorageImpl());
    extend(i);
  }
}

bool Encoder::any_overlap(std::uint32_t range) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (range_of[i] == range) spans.push_back(bytes_of(sources[i]));
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first < spans[i - 1].second) return true;
  }
  return false;
}

/// Returns the sizes without the dimensions that are expanded, which count as 1.
c10::SmallVector<std::int64_t, 8> distinct_sizes(const at::Tensor& tensor) {
  c10::SmallVector<std::int64_t, 8> sizes(tensor.sizes().begin(), tensor.sizes().end());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (tensor.strides()[d] == 0) sizes[d] = 1;
  }
  return sizes;
}

/// Replaces the tensors of a range by contiguous copies of their distinct elements, side by side in one storage;
/// expanded dimensions stay expanded.
void Encoder::compact(std::uint32_t range) {
  std::uint64_t total = 0;
  const auto bytes_of_copy = [](const Source& source) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(source.extent.distinct) * source.tensor.itemsize();
    return (bytes + kRangeAlignment - 1) / kRangeAlignment * kRangeAlignment;
  };
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (range_of[i] == range) total += bytes_of_copy(sources[i]);
  }
  const at::Tensor memory = at::empty({static_cast<std::int64_t>(total)}, at::kByte);
  const std::uint32_t into = range_number(memory.storage().unsafeGetStorageImpl());
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (range_of[i] != range) continue;
    const at::Tensor& tensor = sources[i].tensor;
    const auto offset = static_cast<std::int64_t>(filled / tensor.itemsize());
    filled += bytes_of_copy(sources[i]);
    const c10::SmallVector<std::int64_t, 8> sizes = distinct_sizes(tensor);
    c10::SmallVector<std::int64_t, 8> strides(sizes.size());
    contiguous_strides(sizes, strides.data());
    at::Tensor copy = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(memory.storage()), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    copy.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
    copy.copy_(at::as_strided(tensor, sizes, tensor.strides(), tensor.storage_offset()));
    for (std::size_t d = 0; d < strides.size(); ++d) {
      if (tensor.strides()[d] == 0) strides[d] = 0;
    }
    copy.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), strides, offset);
    const Extent extent = *extent_of(copy.sizes(), copy.strides(), offset, copy.itemsize());
    sources[i] = Source{std::move(copy), extent, nullptr};
    range_of[i] = into;
    extend(i);
  }
}

void Encoder::compact_sparsely_used() {
  const auto known = static_cast<std::uint32_t>(ranges.size());
  for (std::uint32_t r = 0; r < known; ++r) {
    if (ranges[r].size() < kCompactFrom || ranges[r].size() < 2 * ranges[r].used || any_overlap(r)) continue;
    compact(r);
    ranges[r] = Range{};
  }
}

bool Encoder::is_held_elsewhere(std::uint32_t range) const {
  struct Holder {
    const c10::TensorImpl* impl;
    std::size_t references;
    std::size_t ours;
  };
  c10::SmallVector<Holder, 4> holders;
  const auto add = [&holders](const at::TensorBase& tensor) {
    const auto* impl = tensor.unsafeGetTensorImpl();
    const auto known = std::find_if(holders.begin(), holders.end(), [impl](const Holder& h) { return h.impl == impl; });
    if (known != holders.end()) {
      ++known->ours;
    } else {
      holders.push_back(Holder{impl, tensor.use_count(), 1});
    }
  };
  const c10::Storage* storage = nullptr;
  for (std::uint32_t i = ranges[range].first; i != kNoStorage; i = next_in_range[i]) {
    const at::Tensor* given = sources[i].given;
    if (!given) continue;
    storage = &sources[i].tensor.storage();
    // The tensor that a part (indices of a sparse tensor, scales, zero points) belongs to holds the memory of the part.
    // These references cannot be counted here, so the memory counts as held elsewhere.
    if (!given->has_storage() || !given->storage().is_alias_of(*storage)) return true;
    add(*given);
    add(sources[i].tensor);
    if (given->is_view() && given->_base().storage().is_alias_of(*storage)) add(given->_base());
  }
  if (!storage) return false;
  const bool ours = std::all_of(holders.begin(), holders.end(), [](const Holder& h) { return h.references == h.ours; });
  return !ours || storage->use_count() != holders.size();
}

Result<wire::Segment> Encoder::segment_of(std::uint32_t range, SharedMemory shared) const {
  const std::uint64_t size = ranges[range].size();
  if (shared == SharedMemory::reference || !is_held_elsewhere(range)) {
    // The owner is the storage, not the tensor: a tensor would keep its graph alive.
    const c10::Storage& storage = sources[ranges[range].first].tensor.storage();
    return wire::Segment{ranges[range].data(), size, std::make_shared<const c10::Storage>(storage)};
  }
  Result<c10::DataPtr> copy = catch_torch(
      Errc::limit_exceeded, [size]() -> Result<c10::DataPtr> { return c10::GetCPUAllocator()->allocate(size); });
  if (!copy) {
    return Error(Errc::limit_exceeded, "no memory for a copy of " + std::to_string(size) +
                                           " bytes of tensors, which something else holds, too");
  }
  std::memcpy(copy->get(), ranges[range].data(), size);
  const auto* data = static_cast<const std::byte*>(copy->get());
  return wire::Segment{data, size, std::make_shared<const c10::DataPtr>(*std::move(copy))};
}

/// Copies small ranges into one segment: into `small_memory` if they fit there, else into memory that the segment owns.
wire::Segment Encoder::gather(std::uint64_t size, c10::ArrayRef<std::uint32_t> small, wire::Bytes* small_memory) const {
  std::shared_ptr<std::byte[]> owned;
  std::byte* buffer = nullptr;
  if (small_memory && size <= wire::kSmallBulk) {
    small_memory->resize(size);
    buffer = small_memory->data();
  } else {
    owned = std::make_shared_for_overwrite<std::byte[]>(size);
    buffer = owned.get();
  }
  std::uint64_t filled = 0;
  for (const std::uint32_t r : small) {
    const std::uint64_t offset = table.storages[ranges[r].number].offset;
    // Bytes between the storages must not show the peer old contents of the memory.
    std::memset(buffer + filled, 0, offset - filled);
    std::memcpy(buffer + offset, ranges[r].data(), ranges[r].size());
    filled = offset + ranges[r].size();
  }
  return wire::Segment{buffer, size, std::move(owned)};
}

Result<base::Reused<std::vector<wire::Segment>>> Encoder::lay_out(SharedMemory shared, wire::Bytes* small_memory) {
  std::uint64_t total = 0;
  for (const Range& range : ranges) total += range.size();
  c10::SmallVector<std::uint32_t, 4> small;
  c10::SmallVector<std::uint32_t, 4> large;
  for (std::uint32_t r = 0; r < ranges.size(); ++r) {
    if (ranges[r].size() == 0) continue;
    (total < kCopyMessage || ranges[r].size() < kCopyStorage ? small : large).push_back(r);
  }
  table.storages.reserve(small.size() + large.size());
  table.segments.reserve(large.size() + 1);
  std::uint64_t end = 0;
  for (const std::uint32_t r : small) {
    const std::uint64_t offset = (end + kStorageAlignment - 1) / kStorageAlignment * kStorageAlignment;
    ranges[r].number = static_cast<std::uint32_t>(table.storages.size());
    table.storages.push_back(StorageEntry{0, offset, ranges[r].size()});
    end = offset + ranges[r].size();
  }
  base::Reused<std::vector<wire::Segment>> segments;
  segments.reuse();
  segments.reserve(large.size() + 1);
  if (end > 0) {
    segments.push_back(gather(end, small, small_memory));
    table.segments.push_back(end);
  }
  next_in_range.resize(sources.size());
  for (std::uint32_t i = static_cast<std::uint32_t>(sources.size()); i-- > 0;) {
    if (range_of[i] != kNoStorage) next_in_range[i] = std::exchange(ranges[range_of[i]].first, i);
  }
  for (const std::uint32_t r : large) {
    Result<wire::Segment> segment = segment_of(r, shared);
    if (!segment) return segment.error();
    ranges[r].number = static_cast<std::uint32_t>(table.storages.size());
    table.storages.push_back(StorageEntry{static_cast<std::uint32_t>(segments.size()), 0, ranges[r].size()});
    table.segments.push_back(ranges[r].size());
    segments.push_back(*std::move(segment));
  }
  return segments;
}

void Encoder::describe_parts() {
  std::size_t dims = table.dims.size();
  for (const Source& source : sources) dims += 2 * static_cast<std::size_t>(source.tensor.dim());
  table.dims.reserve(dims);
  table.parts.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const at::Tensor& tensor = sources[i].tensor;
    Part part;
    part.dtype = tensor.scalar_type();
    part.dims = static_cast<std::uint8_t>(tensor.dim());
    part.dims_at = static_cast<std::uint32_t>(table.dims.size());
    table.dims.insert(table.dims.end(), tensor.sizes().begin(), tensor.sizes().end());
    table.dims.insert(table.dims.end(), tensor.strides().begin(), tensor.strides().end());
    if (range_of[i] != kNoStorage) {
      const Range& range = ranges[range_of[i]];
      part.storage = range.number;
      part.offset = static_cast<std::int64_t>((bytes_of(sources[i]).first - range.begin) / tensor.itemsize());
    }
    table.parts.push_back(part);
  }
}

Result<EncodedTensors> encode_unguarded(std::span<const at::Tensor> tensors, std::span<const std::uint8_t> recorded,
                                        SharedMemory shared, wire::Bytes* small_memory, std::size_t& position) {
  Encoder encoder;
  encoder.table.tensors.reserve(tensors.size());
  encoder.sources.reserve(tensors.size());
  for (position = 0; position < tensors.size(); ++position) {
    const at::Tensor& tensor = tensors[position];
    const auto first_part = static_cast<std::uint32_t>(encoder.sources.size());
    Result<Entry> entry = take_apart(tensor, encoder.sources);
    if (!entry) return Error(entry.error().code(), describe(position, tensor) + ": " + entry.error().text());
    entry->first_part = first_part;
    entry->recorded = !recorded.empty() && recorded[position] != 0 && entry->requires_grad;
    if (is_sparse(entry->kind)) {
      entry->dims_at = static_cast<std::uint32_t>(encoder.table.dims.size());
      entry->dims = static_cast<std::uint8_t>(tensor.dim());
      const c10::IntArrayRef sizes = tensor.sizes();
      encoder.table.dims.insert(encoder.table.dims.end(), sizes.begin(), sizes.end());
    }
    encoder.table.tensors.push_back(*entry);
  }
  encoder.find_ranges();
  encoder.compact_sparsely_used();
  Result<base::Reused<std::vector<wire::Segment>>> segments = encoder.lay_out(shared, small_memory);
  if (!segments) return segments.error();
  EncodedTensors encoded;
  encoded.segments = *std::move(segments);
  encoder.describe_parts();
  encoded.table = write_table(encoder.table);
  return encoded;
}

}  // namespace

Result<EncodedTensors> encode_tensors(std::span<const at::Tensor> tensors, std::span<const std::uint8_t> recorded,
                                      SharedMemory shared, wire::Bytes* small) {
  if (!recorded.empty() && recorded.size() != tensors.size()) {
    return Error(Errc::bad_arguments, "recorded has another length than tensors");
  }
  std::size_t position = 0;
  Result<EncodedTensors> encoded = catch_torch(Errc::unsupported, [&] {
    // Nothing is recorded: the copies that are made here must not become part of the caller's graph.
    const at::NoGradGuard no_grad;
    return encode_unguarded(tensors, recorded, shared, small, position);
  });
  // A refusal names its position already; an exception that libtorch threw while a tensor was taken apart does not.
  if (encoded || position >= tensors.size() || encoded.error().text().starts_with("argument tensor ")) return encoded;
  return Error(encoded.error().code(), describe(position, tensors[position]) + ": " + encoded.error().text());
}

}  // namespace caftan::tensor
