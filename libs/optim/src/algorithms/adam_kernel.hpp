/// The kernel of Adam and AdamW.
#pragma once

#include "kernels.hpp"

namespace caftan::optim {

/// State rows: the mean, the mean of squares and, with amsgrad, the largest of these.
template <bool Decoupled>
struct AdamKernel {
  static constexpr bool kTakesRoots = true;

  double decay;            ///< what the parameter is multiplied by: of AdamW to shrink, of Adam to enter the gradient
  double mean_kept;        ///< betas[0]
  double mean_taken;       ///< 1 - betas[0]
  double squares_kept;     ///< betas[1]
  double squares_taken;    ///< 1 - betas[1]
  double root_correction;  ///< what the root of the mean of squares is divided by
  double eps;
  double rate;  ///< what the mean is multiplied by: negative
  bool decays;
  bool amsgrad;
  bool maximize;

  bool fits_float() const {
    return fit_float(decay, mean_kept, mean_taken, squares_kept, squares_taken, root_correction, eps, rate);
  }

  template <class T>
  void average(const Row<T>& row, T* roots_of) const {
    const auto loop = [&](auto has_decay, auto has_largest) {
      const T* __restrict__ const parameters = row.parameter;
      const T* __restrict__ const gradients = row.gradient;
      T* __restrict__ const means = row.first;
      T* __restrict__ const squares = row.second;
      T* __restrict__ const largest = row.third;
      T* __restrict__ const out = roots_of;
      const T sign = maximize ? -1 : 1;
      const T added = static_cast<T>(decay);
      const T kept = static_cast<T>(mean_kept);
      const T taken = static_cast<T>(mean_taken);
      const T square_kept = static_cast<T>(squares_kept);
      const T square_taken = static_cast<T>(squares_taken);
      for (std::size_t i = 0; i < row.size; ++i) {
        T gradient = sign * gradients[i];
        if constexpr (has_decay) gradient = std::fma(added, parameters[i], gradient);
        means[i] = std::fma(taken, gradient, means[i] * kept);
        T square = std::fma(square_taken * gradient, gradient, squares[i] * square_kept);
        squares[i] = square;
        if constexpr (has_largest) {
          const bool is_new = square > largest[i] || square != square;  // no number is larger than all: at::maximum
          square = is_new ? square : largest[i];
          largest[i] = square;
        }
        out[i] = square;
      }
    };
    with_flags(loop, decays && !Decoupled, amsgrad);
  }

  template <class T>
  void step(const Row<T>& row, const T* taken_roots) const {
    const auto loop = [&](auto shrinks) {
      T* __restrict__ const parameters = row.parameter;
      const T* __restrict__ const means = row.first;
      const T* __restrict__ const roots = taken_roots;
      const T shrink = static_cast<T>(decay);
      const T correction = static_cast<T>(root_correction);
      const T added = static_cast<T>(eps);
      const T factor = static_cast<T>(rate);
      for (std::size_t i = 0; i < row.size; ++i) {
        T parameter = parameters[i];
        if constexpr (shrinks) parameter *= shrink;
        parameters[i] = parameter + factor * means[i] / (roots[i] / correction + added);
      }
    };
    with_flags(loop, decays && Decoupled);
  }
};

}  // namespace caftan::optim
