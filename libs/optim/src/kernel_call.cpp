#include "kernel_call.hpp"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/Version.h>
#include <ATen/ops/empty.h>
#include <c10/core/DispatchKeySet.h>

#include <string>

namespace caftan::optim {
namespace {

/// ATen's kernels for AVX512 round as those for AVX2 do; those for any processor add without fusing.
bool aten_fuses() {
#if defined(__x86_64__)
  const std::string capability = at::get_cpu_capability();
  return capability == "AVX2" || capability == "AVX512";
#else
  return false;
#endif
}

/// Returns what of a tensor's keys decides which code runs for it below autograd.
at::DispatchKeySet keys_of(const at::Tensor& tensor) {
  return tensor.key_set() - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
}

bool lie_apart(const at::Tensor& a, const at::Tensor& b) {
  const auto* const first = static_cast<const char*>(a.const_data_ptr());
  const auto* const second = static_cast<const char*>(b.const_data_ptr());
  return first + a.nbytes() <= second || second + b.nbytes() <= first;
}

}  // namespace

bool kernel_covers(const Stepped& s, std::size_t slots) {
  static const bool fuses = aten_fuses();
  static const at::DispatchKeySet plain = keys_of(at::empty({0}));
  const at::Tensor& parameter = *s.parameter;
  const at::ScalarType dtype = parameter.scalar_type();
  if (!fuses || (dtype != at::kFloat && dtype != at::kDouble)) return false;
  const auto lies_alike = [&](const at::Tensor& other) {
    return other.defined() && other.scalar_type() == dtype && keys_of(other) == plain &&
           other.is_non_overlapping_and_dense() && other.strides() == parameter.strides() &&
           other.numel() == parameter.numel();
  };
  if (!lies_alike(parameter) || !lies_alike(*s.gradient) || !lie_apart(parameter, *s.gradient)) return false;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const at::Tensor& state = s.state->tensors[slot];
    if (!lies_alike(state) || !lie_apart(state, *s.gradient)) return false;
  }
  return true;
}

void for_each_range(const at::Tensor& parameter, c10::function_ref<void(std::size_t begin, std::size_t size)> code) {
  const std::int64_t size = parameter.numel();
  if (size <= at::internal::GRAIN_SIZE || at::get_num_threads() == 1) {
    code(0, static_cast<std::size_t>(size));
    return;
  }
  // The iterator, because at::parallel_for is serial in a source that is not compiled for OpenMP as libtorch is.
  const at::Tensor row = parameter.as_strided({size}, {1});
  const auto* const start = static_cast<const char*>(row.const_data_ptr());
  auto ranges = at::TensorIterator::borrowing_nullary_op(row);
  ranges.for_each([&](char** data, const std::int64_t*, std::int64_t count, std::int64_t) {
    code(static_cast<std::size_t>(data[0] - start) / row.element_size(), static_cast<std::size_t>(count));
  });
}

void* Roots::reserve(at::ScalarType dtype, std::size_t size) {
  if (!numbers_.defined() || numbers_.scalar_type() != dtype) {
    numbers_ = at::empty({static_cast<std::int64_t>(kMost)}, dtype);
  }
  numbers_.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<std::int64_t>(size)});
  return numbers_.mutable_data_ptr();
}

void Roots::take() { numbers_.sqrt_(); }

}  // namespace caftan::optim
