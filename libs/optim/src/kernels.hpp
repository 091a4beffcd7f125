/// Kernels: they pass over the memory of a parameter once or twice instead of once for each ATen operation, and round
/// exactly as the chain of ATen operations of their algorithm does with AVX2: `add` with alpha multiplies and adds with
/// one rounding, `addcmul` rounds value * a, then multiplies by b and adds with one rounding, `addcdiv` rounds three
/// times. Roots are the exception: those of libtorch are MKL's, which are not always the nearest number and differ
/// between processors, so ATen takes them between the two parts of a kernel. kernels.cpp alone is compiled for AVX2:
/// these headers include nothing whose code other sources share.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

namespace caftan::optim {

/// A parameter, its gradient and its state tensors as rows of `size` numbers that do not overlap. The rows of state
/// tensors that the kernel does not use may be null.
template <class T>
struct Row {
  T* parameter;
  const T* gradient;
  T* first;
  T* second;
  T* third;
  std::size_t size;
};

// A kernel has the members
//     bool fits_float() const;                                     // whether all of its numbers are finite as floats
//     template <class T> void step(const Row<T>&, const T* roots) const;
// and where it may take roots from ATen
//     bool takes_roots() const;
//     template <class T> void average(const Row<T>&, T* squares) const;
// kernels.cpp has the instances for float and double. Precondition of both functions: the processor has AVX2 and FMA.

/// Runs the first part of a kernel that takes roots: steps the state, and writes the numbers to take the roots of.
template <class Kernel, class T>
void run_average(const Kernel& kernel, const Row<T>& row, T* squares);

/// Runs the last part of a kernel, which steps the parameter by `roots`; where these are null, the whole kernel.
template <class Kernel, class T>
void run_step(const Kernel& kernel, const Row<T>& row, const T* roots);

/// Returns whether all numbers of a kernel are finite as floats. ATen refuses a factor that is not.
template <class... Numbers>
bool fit_float(Numbers... numbers) {
  return ((std::abs(numbers) <= static_cast<double>(std::numeric_limits<float>::max())) && ...);
}

template <class Code>
void with_flags(const Code& code) {
  code();
}

/// Calls `code` with the flags as compile-time constants, so that its loop has no branches.
template <class Code, class... Flags>
void with_flags(const Code& code, bool flag, Flags... rest) {
  const auto with = [&](auto constant) { with_flags([&](auto... later) { code(constant, later...); }, rest...); };
  if (flag) {
    with(std::true_type());
  } else {
    with(std::false_type());
  }
}

}  // namespace caftan::optim
