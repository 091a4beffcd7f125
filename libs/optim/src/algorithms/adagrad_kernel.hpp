/// The kernel of Adagrad for dense gradients.
#pragma once

#include "kernels.hpp"

namespace caftan::optim {

/// State rows: the sum of squares.
struct AdagradKernel {
  double weight_decay;
  double eps;
  double rate;  ///< what the gradient is multiplied by: negative
  bool maximize;

  bool takes_roots() const { return true; }
  bool fits_float() const { return fit_float(weight_decay, eps, rate); }

  template <class T>
  void average(const Row<T>& row, T* roots_of) const {
    const auto loop = [&](auto decays) {
      const T* __restrict__ const parameters = row.parameter;
      const T* __restrict__ const gradients = row.gradient;
      T* __restrict__ const sums = row.first;
      T* __restrict__ const out = roots_of;
      const T sign = maximize ? -1 : 1;
      const T decay = static_cast<T>(weight_decay);
      for (std::size_t i = 0; i < row.size; ++i) {
        T gradient = sign * gradients[i];
        if constexpr (decays) gradient = std::fma(decay, parameters[i], gradient);
        const T sum = std::fma(gradient, gradient, sums[i]);
        sums[i] = sum;
        out[i] = sum;
      }
    };
    with_flags(loop, weight_decay != 0);
  }

  template <class T>
  void step(const Row<T>& row, const T* taken_roots) const {
    const auto loop = [&](auto decays) {
      T* __restrict__ const parameters = row.parameter;
      const T* __restrict__ const gradients = row.gradient;
      const T* __restrict__ const roots = taken_roots;
      const T sign = maximize ? -1 : 1;
      const T decay = static_cast<T>(weight_decay);
      const T added = static_cast<T>(eps);
      const T factor = static_cast<T>(rate);
      for (std::size_t i = 0; i < row.size; ++i) {
        T gradient = sign * gradients[i];
        if constexpr (decays) gradient = std::fma(decay, parameters[i], gradient);
        parameters[i] += factor * gradient / (roots[i] + added);
      }
    };
    with_flags(loop, weight_decay != 0);
  }
};

}  // namespace caftan::optim
