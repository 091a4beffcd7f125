#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "caftan/tensor/codec.hpp"
#include "caftan/tensor/torch_errors.hpp"
#include "source_parts.hpp"

namespace caftan::tensor {
namespace {

using namespace detail;

/// Below this a copy costs less than keeping track of the owner.
constexpr std::uint64_t kCopyMessage = 16384;
constexpr std::uint64_t kCopyStorage = 4096;
/// A range of at least this size, of which less than half is used, is sent as a compact copy.
constexpr std::uint64_t kCompactFrom = 8192;
/// Ranges start at a multiple of the largest item, so that every dtype over the storage still counts in whole items.
constexpr std::uint64_t kRangeAlignment = 16;

/// The bytes of one storage that the message touches.
struct Range {
  const c10::StorageImpl* storage = nullptr;
  std::uint64_t begin = 0;  ///< bytes from the start of the storage
  std::uint64_t end = 0;
  std::uint64_t used = 0;  ///< distinct bytes of all its tensors
  std::uint32_t number = 0;

  std::uint64_t size() const noexcept { return end - begin; }
  const std::byte* data() const noexcept { return static_cast<const std::byte*>(storage->data()) + begin; }
};

struct Encoder {
  Sources sources;
  c10::SmallVector<std::uint32_t, 4> range_of;  ///< per source
  c10::SmallVector<Range, 4> ranges;
  LayoutTable table;

  void find_ranges();
  void compact_sparsely_used();
  std::vector<wire::Segment> lay_out();
  void describe_parts();

 private:
  std::uint32_t range_number(const c10::StorageImpl* storage);
  void extend(std::size_t source);
  bool any_overlap(std::uint32_t range) const;
  void compact(Source& source);
  wire::Segment gather(std::uint64_t size, c10::ArrayRef<std::uint32_t> small) const;

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
  ranges.push_back(Range{storage, UINT64_MAX, 0, 0, 0});
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

/// Replaces a tensor by a contiguous copy of its distinct elements; expanded dimensions stay expanded.
void Encoder::compact(Source& source) {
  const at::Tensor& tensor = source.tensor;
  c10::SmallVector<std::int64_t, 8> sizes(tensor.sizes().begin(), tensor.sizes().end());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (tensor.strides()[d] == 0) sizes[d] = 1;
  }
  const at::Tensor distinct = at::as_strided(tensor, sizes, tensor.strides(), tensor.storage_offset());
  const at::Tensor copy = distinct.clone(at::MemoryFormat::Contiguous);
  c10::SmallVector<std::int64_t, 8> strides(copy.strides().begin(), copy.strides().end());
  for (std::size_t d = 0; d < strides.size(); ++d) {
    if (tensor.strides()[d] == 0) strides[d] = 0;
  }
  at::Tensor expanded = at::as_strided(copy, tensor.sizes(), strides, 0);
  source.extent = *extent_of(expanded.sizes(), expanded.strides(), 0, expanded.itemsize());
  source.tensor = std::move(expanded);
}

void Encoder::compact_sparsely_used() {
  const auto known = static_cast<std::uint32_t>(ranges.size());
  for (std::uint32_t r = 0; r < known; ++r) {
    if (ranges[r].size() < kCompactFrom || ranges[r].size() < 2 * ranges[r].used || any_overlap(r)) continue;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (range_of[i] != r) continue;
      compact(sources[i]);
      range_of[i] = range_number(sources[i].tensor.storage().unsafeGetStorageImpl());
      extend(i);
    }
    ranges[r] = Range{};
  }
}

wire::Segment Encoder::gather(std::uint64_t size, c10::ArrayRef<std::uint32_t> small) const {
  auto buffer = std::make_shared_for_overwrite<std::byte[]>(size);
  std::uint64_t filled = 0;
  for (const std::uint32_t r : small) {
    const std::uint64_t offset = table.storages[ranges[r].number].offset;
    std::memset(buffer.get() + filled, 0, offset - filled);  // gaps would show the peer old memory
    std::memcpy(buffer.get() + offset, ranges[r].data(), ranges[r].size());
    filled = offset + ranges[r].size();
  }
  const std::byte* data = buffer.get();
  return wire::Segment{data, size, std::move(buffer)};
}

std::vector<wire::Segment> Encoder::lay_out() {
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
  std::vector<wire::Segment> segments;
  segments.reserve(large.size() + 1);
  if (end > 0) {
    segments.push_back(gather(end, small));
    table.segments.push_back(end);
  }
  std::unordered_map<const c10::StorageImpl*, const at::Tensor*> holders;
  if (!large.empty()) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (range_of[i] != kNoStorage) holders.emplace(ranges[range_of[i]].storage, &sources[i].tensor);
    }
  }
  for (const std::uint32_t r : large) {
    ranges[r].number = static_cast<std::uint32_t>(table.storages.size());
    table.storages.push_back(StorageEntry{static_cast<std::uint32_t>(segments.size()), 0, ranges[r].size()});
    table.segments.push_back(ranges[r].size());
    // The storage, not the tensor: the owner must not keep a graph alive.
    auto owner = std::make_shared<const c10::Storage>(holders.at(ranges[r].storage)->storage());
    segments.push_back(wire::Segment{ranges[r].data(), ranges[r].size(), std::move(owner)});
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
                                        std::size_t& position) {
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
    if (entry->kind >= Kind::sparse_coo) {
      entry->dims_at = static_cast<std::uint32_t>(encoder.table.dims.size());
      entry->dims = static_cast<std::uint8_t>(tensor.dim());
      const c10::IntArrayRef sizes = tensor.sizes();
      encoder.table.dims.insert(encoder.table.dims.end(), sizes.begin(), sizes.end());
    }
    encoder.table.tensors.push_back(*entry);
  }
  encoder.find_ranges();
  encoder.compact_sparsely_used();
  EncodedTensors encoded;
  encoded.segments = encoder.lay_out();
  encoder.describe_parts();
  encoded.table = write_table(encoder.table);
  return encoded;
}

}  // namespace

Result<EncodedTensors> encode_tensors(std::span<const at::Tensor> tensors, std::span<const std::uint8_t> recorded) {
  if (!recorded.empty() && recorded.size() != tensors.size()) {
    return Error(Errc::bad_arguments, "recorded has another length than tensors");
  }
  std::size_t position = 0;
  Result<EncodedTensors> encoded = catch_torch(Errc::unsupported, [&] {
    // The copies made on the way must not become part of the caller's graph.
    const at::NoGradGuard no_grad;
    return encode_unguarded(tensors, recorded, position);
  });
  // A refusal has its position already; what libtorch threw while a tensor was taken apart has none.
  if (encoded || position >= tensors.size() || encoded.error().text().starts_with("argument tensor ")) return encoded;
  return Error(encoded.error().code(), describe(position, tensors[position]) + ": " + encoded.error().text());
}

}  // namespace caftan::tensor
