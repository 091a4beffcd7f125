/// Steps of parameters by kernels (kernels.hpp): which parameters have one, and the cut over torch's threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <algorithm>
#include <cstddef>

#include "kernels.hpp"
#include "update.hpp"

namespace caftan::optim {

/// Returns whether kernels can step the parameter with its first `slots` state tensors: all are plain tensors of the
/// CPU, of one dtype, float or double, whose elements lie in one row in the same order, and the gradient is memory of
/// its own. False for all where ATen does not run its AVX2 code, whose roundings kernels have.
bool kernel_covers(const Stepped& s, std::size_t slots);

/// Calls `code` for ranges that together are 0 to `parameter.numel()`: on several threads where ATen's own element-wise
/// operations use several.
void for_each_range(const at::Tensor& parameter, c10::function_ref<void(std::size_t begin, std::size_t size)> code);

/// Takes roots of rows as ATen does. Memory is allocated at the first use and kept.
class Roots {
 public:
  /// The most numbers at once. The rows of a part of this length stay in the second-level cache from one part of a
  /// kernel to the other. MKL takes the roots of so few in the thread that asks; those of 12,000 it cuts over OpenMP's
  /// threads, which would wait for each other at each part.
  static constexpr std::size_t kMost = 8'192;

  /// Returns memory for `size` <= kMost numbers, not initialized; valid until the next call.
  void* reserve(at::ScalarType dtype, std::size_t size);
  /// Replaces the numbers that were written to the reserved memory by their roots.
  void take();

 private:
  at::Tensor numbers_;
};

template <class T>
Row<T> part_of(const Row<T>& row, std::size_t begin, std::size_t size) {
  const auto from = [begin](auto* numbers) { return numbers ? numbers + begin : numbers; };
  return {from(row.parameter), from(row.gradient), from(row.first), from(row.second), from(row.third), size};
}

template <class T, class Kernel>
void step_row(const Kernel& kernel, const Row<T>& row, at::ScalarType dtype, Roots& roots) {
  if constexpr (requires { kernel.takes_roots(); }) {
    for (std::size_t begin = 0; kernel.takes_roots() && begin < row.size; begin += Roots::kMost) {
      const Row<T> part = part_of(row, begin, std::min(Roots::kMost, row.size - begin));
      T* const numbers = static_cast<T*>(roots.reserve(dtype, part.size));
      run_average(kernel, part, numbers);
      roots.take();
      run_step(kernel, part, static_cast<const T*>(numbers));
    }
    if (kernel.takes_roots()) return;
  }
  run_step(kernel, row, static_cast<const T*>(nullptr));
}

template <class T, class Kernel>
void step_rows(const Kernel& kernel, const Stepped& s, std::size_t slots, Roots& roots) {
  const auto state = [&](std::size_t slot) {
    return slot < slots ? static_cast<T*>(s.state->tensors[slot].mutable_data_ptr()) : nullptr;
  };
  const at::ScalarType dtype = s.parameter->scalar_type();
  const Row<T> row{static_cast<T*>(s.parameter->mutable_data_ptr()),
                   static_cast<const T*>(s.gradient->const_data_ptr()),
                   state(0),
                   state(1),
                   state(2),
                   static_cast<std::size_t>(s.parameter->numel())};
  for_each_range(*s.parameter, [&](std::size_t begin, std::size_t size) {
    if (size == row.size) return step_row(kernel, row, dtype, roots);
    Roots of_this_thread;
    step_row(kernel, part_of(row, begin, size), dtype, of_this_thread);
  });
}

/// Steps a parameter by a kernel that uses its first `slots` state tensors.
/// Returns false, and has changed nothing, where the kernel does not cover it.
template <class Kernel>
bool step_by_kernel(const Kernel& kernel, const Stepped& s, std::size_t slots, Roots& roots) {
  if (!kernel_covers(s, slots)) return false;
  if (s.parameter->scalar_type() == at::kDouble) {
    step_rows<double>(kernel, s, slots, roots);
    return true;
  }
  if (!kernel.fits_float()) return false;
  step_rows<float>(kernel, s, slots, roots);
  return true;
}

}  // namespace caftan::optim
