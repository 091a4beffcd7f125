#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_validate_sparse_compressed_tensor_args.h>
#include <ATen/ops/_validate_sparse_coo_tensor_args.h>
#include <ATen/quantized/QTensorImpl.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cmath>

#include "caftan/tensor/codec.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"
#include "caftan/wire/archive_error.hpp"
#include "layout_table.hpp"

namespace caftan::tensor {
namespace {

using namespace detail;
using Keepalive = std::shared_ptr<const void>;
using Storages = c10::SmallVector<c10::Storage, 2>;

c10::Storage make_storage(c10::DataPtr data, std::uint64_t bytes) {
  // Resizable, as any tensor's storage is: when libtorch resizes it, it takes memory of its own and gives the block
  // back.
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                               c10::SymInt(static_cast<std::int64_t>(bytes)), std::move(data),
                                               c10::GetDefaultCPUAllocator(), /*resizable=*/true);
}

/// A block that has one storage belongs to it; several storages share a block by a reference count.
Storages make_storages(const LayoutTable& table, std::vector<wire::Block>&& blocks) {
  Storages storages;
  storages.reserve(table.storages.size());
  const c10::Device cpu(c10::DeviceType::CPU);
  for (std::size_t first = 0; first < table.storages.size();) {
    const std::uint32_t segment = table.storages[first].segment;
    std::size_t last = first;
    while (last + 1 < table.storages.size() && table.storages[last + 1].segment == segment) ++last;
    if (first == last && table.storages[first].offset == 0) {
      std::byte* data = std::move(blocks[segment]).release();
      storages.push_back(
          make_storage(c10::DataPtr(data, data, &wire::Block::give_back, cpu), table.storages[first].bytes));
    } else {
      std::byte* data = blocks[segment].data();
      const Keepalive keepalive = std::move(blocks[segment]).share();
      for (std::size_t i = first; i <= last; ++i) {
        auto held = std::make_unique<Keepalive>(keepalive);
        c10::DataPtr at(
            data + table.storages[i].offset, held.get(), [](void* context) { delete static_cast<Keepalive*>(context); },
            cpu);
        static_cast<void>(held.release());
        storages.push_back(make_storage(std::move(at), table.storages[i].bytes));
      }
    }
    first = last + 1;
  }
  return storages;
}

at::Tensor make_part(const LayoutTable& table, const Part& part, const Storages& storages) {
  const c10::IntArrayRef sizes = table.sizes(part);
  const c10::IntArrayRef strides = table.strides(part);
  c10::Storage storage = part.storage == kNoStorage ? make_storage(c10::DataPtr(nullptr, c10::DeviceType::CPU), 0)
                                                    : storages[part.storage];
  if (part.dtype == at::ScalarType::Bool && part.storage != kNoStorage) {
    const auto* first = static_cast<const std::uint8_t*>(storage.data()) + part.offset;
    const std::optional<Extent> extent = extent_of(sizes, strides, part.offset, 1);
    if (!extent || !bools_are_valid(first, sizes, strides, *extent)) {
      throw wire::DecodeError("a bool that is neither 0 nor 1");
    }
  }
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(part.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, part.offset);
  return tensor;
}

/// Returns the quantized tensor whose integers are `integers`, over the same memory.
at::Tensor make_quantized(const LayoutTable& table, const Entry& entry, const at::Tensor& integers,
                          const Storages& storages) {
  const at::ScalarType dtype = c10::toQIntType(integers.scalar_type());
  at::QuantizerPtr quantizer;
  if (entry.kind == Kind::quantized) {
    quantizer = at::make_per_tensor_affine_quantizer(entry.scale, entry.zero_point, dtype);
  } else {
    const at::Tensor scales = make_part(table, table.parts[entry.first_part + 1], storages);
    const at::Tensor zero_points = make_part(table, table.parts[entry.first_part + 2], storages);
    for (std::int64_t i = 0; i < scales.numel(); ++i) {
      const double scale = scales.const_data_ptr<double>()[i];
      const std::int64_t zero_point = zero_points.const_data_ptr<std::int64_t>()[i];
      if (!std::isfinite(scale) || scale <= 0 || !is_zero_point(zero_point, integers.scalar_type())) {
        throw wire::DecodeError("a bad scale or zero point");
      }
    }
    quantizer = at::make_per_channel_affine_quantizer(scales, zero_points, entry.axis, dtype);
  }
  at::Tensor tensor = at::detail::make_tensor<at::QTensorImpl>(c10::Storage(integers.storage()),
                                                               c10::DispatchKeySet(c10::DispatchKey::QuantizedCPU),
                                                               c10::scalarTypeToTypeMeta(dtype), std::move(quantizer));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(integers.sizes(), integers.strides(), integers.storage_offset());
  return tensor;
}

at::Layout layout_of(Kind kind) {
  switch (kind) {
    case Kind::sparse_coo:
      return at::kSparse;
    case Kind::sparse_csr:
      return at::kSparseCsr;
    case Kind::sparse_csc:
      return at::kSparseCsc;
    case Kind::sparse_bsr:
      return at::kSparseBsr;
    case Kind::sparse_bsc:
      return at::kSparseBsc;
    default:
      return at::kStrided;
  }
}

at::Tensor make_tensor(const LayoutTable& table, const Entry& entry, const Storages& storages) {
  const Part* parts = table.parts.data() + entry.first_part;
  at::Tensor values = make_part(table, parts[0], storages);
  if (entry.kind == Kind::strided) return values;
  if (!is_sparse(entry.kind)) return make_quantized(table, entry, values, storages);
  const c10::IntArrayRef sizes = table.sizes(entry);
  const at::Layout layout = layout_of(entry.kind);
  const at::TensorOptions options = values.options().layout(layout);
  const at::Tensor indices = make_part(table, parts[1], storages);
  // libtorch checks neither indices nor the claim to be coalesced when it makes a sparse tensor.
  if (entry.kind == Kind::sparse_coo) {
    at::_validate_sparse_coo_tensor_args(indices, values, sizes, entry.coalesced);
    return at::_sparse_coo_tensor_unsafe(indices, values, sizes, options, entry.coalesced);
  }
  const at::Tensor plain = make_part(table, parts[2], storages);
  at::_validate_sparse_compressed_tensor_args(indices, plain, values, sizes, layout);
  return at::_sparse_compressed_tensor_unsafe(indices, plain, values, sizes, options);
}

/// Makes the tensors of one message, in order.
class Builder {
 public:
  Builder(const LayoutTable& table, std::vector<wire::Block>&& blocks)
      : table_(table), storages_(make_storages(table, std::move(blocks))) {
    if (table.tensors.size() > 1) first_over_.resize(table.storages.size(), nullptr);
  }

  DecodedTensor make(const Entry& entry) {
    DecodedTensor made;
    if (!entry.defined) return made;
    made.tensor = make_tensor(table_, entry, storages_);
    made.defined = true;
    made.requires_grad = entry.requires_grad;
    made.recorded = entry.recorded;
    if (entry.requires_grad && !entry.recorded) made.tensor.set_requires_grad(true);
    if (!first_over_.empty() && entry.kind == Kind::strided) share_version_counter(entry, made.tensor);
    return made;
  }

 private:
  /// DA-20: tensors over one storage share a version counter, as views of each other do. That holds for tensors that
  /// are not recorded, too: a node that saves one of them saves bytes that an operation on another one may change.
  void share_version_counter(const Entry& entry, const at::Tensor& tensor) {
    const Part& part = table_.parts[entry.first_part];
    if (part.storage == kNoStorage) return;
    c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    if (const c10::TensorImpl*& of = first_over_[part.storage]) {
      impl->set_version_counter(of->version_counter());
    } else {
      of = impl;
    }
  }

  const LayoutTable& table_;
  const Storages storages_;
  c10::SmallVector<const c10::TensorImpl*, 16>
      first_over_;  // by storage, where tensors can share one; kept by the message
};

Result<void> check_blocks(const LayoutTable& table, const std::vector<wire::Block>& blocks) {
  if (blocks.size() != table.segments.size()) {
    return Error(Errc::bad_arguments,
                 "blocks: " + std::to_string(blocks.size()) + ", segments: " + std::to_string(table.segments.size()));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].size() != table.segments[i]) {
      return Error(Errc::bad_arguments, "block " + std::to_string(i) + " has another size than its segment");
    }
  }
  return {};
}

/// Makes all tensors and passes each to `take`.
template <class Take>
Result<void> build_each(const LayoutTable& table, std::vector<wire::Block>&& blocks, Take&& take) {
  if (const Result<void> fit = check_blocks(table, blocks); !fit) return fit;
  return catch_torch(Errc::malformed_payload, [&]() -> Result<void> {
    // The tensors are normal ones even if the reading thread is in inference mode.
    const c10::InferenceMode normal(false);
    Builder builder(table, std::move(blocks));
    for (const Entry& entry : table.tensors) take(builder.make(entry));
    return {};
  });
}

}  // namespace

Result<TensorLayout> TensorLayout::parse(wire::ByteView table, Limits limits) {
  return catch_torch(Errc::malformed_payload, [&]() -> Result<TensorLayout> {
    return TensorLayout(std::make_shared<const LayoutTable>(read_table(table, limits)));
  });
}

std::span<const std::uint64_t> TensorLayout::segment_sizes() const noexcept { return table_->segments; }

std::size_t TensorLayout::tensor_count() const noexcept { return table_->tensors.size(); }

Result<std::vector<DecodedTensor>> TensorLayout::build(std::vector<wire::Block>&& blocks) const {
  std::vector<DecodedTensor> tensors;
  tensors.reserve(table_->tensors.size());
  const Result<void> built =
      build_each(*table_, std::move(blocks), [&](DecodedTensor made) { tensors.push_back(std::move(made)); });
  if (!built) return built.error();
  return tensors;
}

Result<void> decode_tensors(wire::ByteView bytes, TensorLayout::Limits limits, std::vector<wire::Block>&& blocks,
                            std::vector<at::Tensor>& tensors, std::vector<std::uint8_t>& recorded) {
  LayoutTable table;
  const Result<void> read = catch_torch(Errc::malformed_payload, [&]() -> Result<void> {
    table = read_table(bytes, limits);
    return {};
  });
  if (!read) return read;
  tensors.reserve(tensors.size() + table.tensors.size());
  const bool any_recorded =
      std::any_of(table.tensors.begin(), table.tensors.end(), [](const Entry& entry) { return entry.recorded; });
  return build_each(table, std::move(blocks), [&](DecodedTensor made) {
    if (any_recorded) recorded.push_back(made.recorded ? 1 : 0);
    tensors.push_back(std::move(made.tensor));
  });
}

}  // namespace caftan::tensor
