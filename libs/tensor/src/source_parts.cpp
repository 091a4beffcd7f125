#include "source_parts.hpp"

#include <ATen/NamedTensorUtils.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/q_per_channel_axis.h>
#include <ATen/ops/q_per_channel_scales.h>
#include <ATen/ops/q_per_channel_zero_points.h>
#include <ATen/ops/q_scale.h>
#include <ATen/ops/q_zero_point.h>
#include <ATen/ops/resolve_conj.h>
#include <ATen/ops/resolve_neg.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/QScheme.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace caftan::tensor::detail {
namespace {

Error refuse(std::string why) { return Error(Errc::unsupported, std::move(why)); }

/// Returns the dispatch keys for how a tensor is stored, without those that only say how operators treat it.
std::uint64_t material_keys(const at::Tensor& tensor) {
  return (tensor.key_set() - c10::autograd_dispatch_keyset_with_ADInplaceOrView - c10::autocast_dispatch_keyset)
      .raw_repr();
}
std::uint64_t keys_of(c10::DispatchKey key) { return c10::DispatchKeySet(key).raw_repr(); }

/// Returns in words why a tensor that take_apart refuses cannot travel: the first reason that applies. The last one is
/// for all kinds of tensors without a test of their own.
std::string why_not(const at::Tensor& tensor) {
  if (tensor.is_meta()) return "a meta tensor has no data";
  if (!tensor.device().is_cpu()) return "on device " + tensor.device().str() + ": only CPU tensors travel";
  if (tensor.is_nested()) return "nested tensors do not travel: send its tensors";
  if (tensor.is_mkldnn()) return "opaque mkldnn storage: call to_dense() first";
  if (tensor.unsafeGetTensorImpl()->is_python_dispatch()) return "a tensor subclass does not travel";
  return "a wrapped tensor, or of a backend that does not travel";
}

Result<Extent> extent_in_storage(const at::Tensor& tensor) {
  const std::size_t itemsize = tensor.itemsize();
  const auto extent = extent_of(tensor.sizes(), tensor.strides(), tensor.storage_offset(), itemsize);
  if (!extent) return refuse("its size overflows");
  if (extent->numel == 0) return *extent;
  const std::uint64_t end = (static_cast<std::uint64_t>(extent->last) + 1) * itemsize;
  if (end > tensor.storage().nbytes() || !tensor.storage().unsafeGetStorageImpl()->data()) {
    return refuse("its storage is smaller than the tensor");
  }
  if (tensor.scalar_type() == at::ScalarType::Bool &&
      !bools_are_valid(static_cast<const std::uint8_t*>(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       *extent)) {
    return refuse("a bool that is neither 0 nor 1 in memory");
  }
  return *extent;
}

/// @param given  the tensor of the message that `tensor` is, or is part of
Result<void> add_strided(at::Tensor tensor, const at::Tensor& given, Sources& sources) {
  if (!dtype_code(tensor.scalar_type())) return refuse("this dtype does not travel");
  if (static_cast<std::size_t>(tensor.dim()) > kMostDims) return refuse("it has more than 64 dimensions");
  const bool is_copied = tensor._is_zerotensor() || tensor.is_conj() || tensor.is_neg();
  if (tensor._is_zerotensor()) tensor = at::clone(tensor);
  if (tensor.is_conj()) tensor = at::resolve_conj(tensor);
  if (tensor.is_neg()) tensor = at::resolve_neg(tensor);
  Result<Extent> extent = extent_in_storage(tensor);
  if (!extent) return extent.error();
  sources.push_back(Source{std::move(tensor), *extent, is_copied ? nullptr : &given});
  return {};
}

/// Components are sent contiguous, so that their check at the receiver is linear in their bytes.
Result<void> add_component(const at::Tensor& tensor, const at::Tensor& given, Sources& sources) {
  at::Tensor whole = tensor.contiguous();
  // `contiguous` keeps any stride of a dimension of size 1; sums of sparse tensors have such strides.
  c10::SmallVector<std::int64_t, 8> strides(static_cast<std::size_t>(whole.dim()));
  contiguous_strides(whole.sizes(), strides.data());
  if (whole.strides() != c10::IntArrayRef(strides)) {
    whole = at::as_strided(whole, whole.sizes(), strides, whole.storage_offset());
  }
  return add_strided(std::move(whole), given, sources);
}

struct Components {
  Kind kind;
  std::vector<at::Tensor> tensors;
};

Components components(const at::Tensor& tensor) {
  switch (tensor.layout()) {
    case at::kSparse:
      return {Kind::sparse_coo, {tensor._values(), tensor._indices()}};
    case at::kSparseCsr:
      return {Kind::sparse_csr, {tensor.values(), tensor.crow_indices(), tensor.col_indices()}};
    case at::kSparseCsc:
      return {Kind::sparse_csc, {tensor.values(), tensor.ccol_indices(), tensor.row_indices()}};
    case at::kSparseBsr:
      return {Kind::sparse_bsr, {tensor.values(), tensor.crow_indices(), tensor.col_indices()}};
    default:
      return {Kind::sparse_bsc, {tensor.values(), tensor.ccol_indices(), tensor.row_indices()}};
  }
}

Result<Entry> take_sparse(const at::Tensor& tensor, Entry entry, Sources& sources) {
  if (static_cast<std::size_t>(tensor.dim()) > kMostDims) return refuse("it has more than 64 dimensions");
  Components of = components(tensor);
  entry.kind = of.kind;
  entry.coalesced = of.kind == Kind::sparse_coo && tensor.is_coalesced();
  for (const at::Tensor& component : of.tensors) {
    Result<void> added = add_component(component, tensor, sources);
    if (!added) return added.error();
  }
  return entry;
}

/// Returns a quantized tensor's integers as a tensor over the same memory.
at::Tensor integers_of(const at::Tensor& tensor) {
  at::Tensor integers = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(tensor.storage()), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(c10::toUnderlying(tensor.scalar_type())));
  integers.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return integers;
}

Result<Entry> take_quantized(const at::Tensor& tensor, Entry entry, Sources& sources) {
  const c10::QScheme scheme = tensor.qscheme();
  const bool per_tensor = scheme == c10::kPerTensorAffine || scheme == c10::kPerTensorSymmetric;
  if (!per_tensor && scheme != c10::kPerChannelAffine && scheme != c10::kPerChannelSymmetric) {
    return refuse("quantized with zero points that are no integers");
  }
  if (tensor.scalar_type() == at::ScalarType::QUInt4x2 || tensor.scalar_type() == at::ScalarType::QUInt2x4) {
    return refuse("a quantized dtype of less than a byte");
  }
  Result<void> added = add_strided(integers_of(tensor), tensor, sources);
  if (per_tensor) {
    entry.kind = Kind::quantized;
    entry.scale = at::q_scale(tensor);
    entry.zero_point = at::q_zero_point(tensor);
  } else {
    entry.kind = Kind::quantized_channels;
    entry.axis = static_cast<std::uint8_t>(at::q_per_channel_axis(tensor));
    if (added) added = add_component(at::q_per_channel_scales(tensor), tensor, sources);
    if (added) added = add_component(at::q_per_channel_zero_points(tensor), tensor, sources);
  }
  if (!added) return added.error();
  return entry;
}

}  // namespace

Result<Entry> take_apart(const at::Tensor& tensor, Sources& sources) {
  static const std::uint64_t kCpu = keys_of(c10::DispatchKey::CPU);
  static const std::uint64_t kLazy =
      (c10::DispatchKeySet(c10::DispatchKey::CPU) |
       c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor}))
          .raw_repr();
  Entry entry;
  if (!tensor.defined()) return entry;
  entry.defined = true;
  entry.requires_grad = tensor.requires_grad();
  if (tensor.has_names()) return refuse("named tensors do not travel: call rename(None) first");
  const std::uint64_t keys = material_keys(tensor);
  if ((keys & ~kLazy) == 0 && (keys & kCpu) == kCpu) {
    Result<void> added = add_strided(tensor, tensor, sources);
    if (!added) return added.error();
    return entry;
  }
  if (keys == keys_of(c10::DispatchKey::SparseCPU) || keys == keys_of(c10::DispatchKey::SparseCsrCPU)) {
    return take_sparse(tensor, entry, sources);
  }
  if (keys == keys_of(c10::DispatchKey::QuantizedCPU)) return take_quantized(tensor, entry, sources);
  return refuse(why_not(tensor));
}

std::string describe(std::size_t position, const at::Tensor& tensor) {
  std::string layout;
  if (tensor.is_nested()) {
    layout = "nested";
  } else {
    switch (tensor.layout()) {
      case at::kStrided:
        layout = "strided";
        break;
      case at::kSparse:
        layout = "sparse_coo";
        break;
      case at::kSparseCsr:
        layout = "sparse_csr";
        break;
      case at::kSparseCsc:
        layout = "sparse_csc";
        break;
      case at::kSparseBsr:
        layout = "sparse_bsr";
        break;
      case at::kSparseBsc:
        layout = "sparse_bsc";
        break;
      case at::kMkldnn:
        layout = "mkldnn";
        break;
      default:
        layout = "unknown layout";
    }
  }
  return "argument tensor " + std::to_string(position) + " (" + std::string(dtype_name(tensor.scalar_type())) + " " +
         layout + ")";
}

}  // namespace caftan::tensor::detail
