/// The kernel of Adam and AdamW.
#pragma once

#include "kernels.hpp"

namespace caftan::optim {

/// State rows: the mean, the mean of squares and, with amsgrad, the largest of these.
template <bool Decoupled>
struct AdamKernel {
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
  bool fused;

  bool takes_roots() const { return !fused; }
  bool fits_float() const {
    return fit_float(decay, mean_kept, mean_taken, squares_kept, squares_taken, root_correction, eps, rate);
  }

  template <class T>
  void average(const Row<T>& row, T* squares) const {
    const auto loop = [&](auto adds, auto has_largest) {
      const Numbers<T> n(*this);
      const T* __restrict__ const parameters = row.parameter;
      const T* __restrict__ const gradients = row.gradient;
      T* __restrict__ const means = row.first;
      T* __restrict__ const mean_squares = row.second;
      T* __restrict__ const largest = row.third;
      T* __restrict__ const out = squares;
      for (std::size_t i = 0; i < row.size; ++i) {
        const T gradient = n.gradient(adds, gradients[i], parameters[i]);
        means[i] = n.mean(gradient, means[i]);
        mean_squares[i] = n.square(gradient, mean_squares[i]);
        if constexpr (has_largest) largest[i] = larger(mean_squares[i], largest[i]);
        out[i] = has_largest ? largest[i] : mean_squares[i];
      }
    };
    with_flags(loop, decays && !Decoupled, amsgrad);
  }

  template <class T>
  void step(const Row<T>& row, const T* taken_roots) const {
    if (!taken_roots) return step_by_own_roots(row);
    const auto loop = [&](auto shrinks) {
      const Numbers<T> n(*this);
      T* __restrict__ const parameters = row.parameter;
      const T* __restrict__ const means = row.first;
      const T* __restrict__ const roots = taken_roots;
      for (std::size_t i = 0; i < row.size; ++i) parameters[i] = n.moved(shrinks, parameters[i], means[i], roots[i]);
    };
    with_flags(loop, decays && Decoupled);
  }

 private:
  /// The numbers as T, and what is done to one element.
  template <class T>
  struct Numbers {
    explicit Numbers(const AdamKernel& k)
        : sign(k.maximize ? -1 : 1),
          decay(static_cast<T>(k.decay)),
          mean_kept(static_cast<T>(k.mean_kept)),
          mean_taken(static_cast<T>(k.mean_taken)),
          squares_kept(static_cast<T>(k.squares_kept)),
          squares_taken(static_cast<T>(k.squares_taken)),
          root_correction(static_cast<T>(k.root_correction)),
          eps(static_cast<T>(k.eps)),
          rate(static_cast<T>(k.rate)) {}

    T gradient(auto adds, T given, T parameter) const {
      return adds ? std::fma(decay, parameter, sign * given) : sign * given;
    }
    T mean(T gradient, T before) const { return std::fma(mean_taken, gradient, before * mean_kept); }
    T square(T gradient, T before) const { return std::fma(squares_taken * gradient, gradient, before * squares_kept); }
    T moved(auto shrinks, T parameter, T mean, T root) const {
      return (shrinks ? parameter * decay : parameter) + rate * mean / (root / root_correction + eps);
    }

    T sign, decay, mean_kept, mean_taken, squares_kept, squares_taken, root_correction, eps, rate;
  };

  /// No number counts as larger than all, as for at::maximum.
  template <class T>
  static T larger(T square, T largest) {
    return square > largest || square != square ? square : largest;
  }

  template <class T>
  void step_by_own_roots(const Row<T>& row) const {
    const auto loop = [&](auto has_decay, auto has_largest) {
      constexpr std::bool_constant<has_decay && !Decoupled> adds{};
      constexpr std::bool_constant<has_decay && Decoupled> shrinks{};
      const Numbers<T> n(*this);
      T* __restrict__ const parameters = row.parameter;
      const T* __restrict__ const gradients = row.gradient;
      T* __restrict__ const means = row.first;
      T* __restrict__ const mean_squares = row.second;
      T* __restrict__ const largest = row.third;
      for (std::size_t i = 0; i < row.size; ++i) {
        const T gradient = n.gradient(adds, gradients[i], parameters[i]);
        const T mean = n.mean(gradient, means[i]);
        T square = n.square(gradient, mean_squares[i]);
        means[i] = mean;
        mean_squares[i] = square;
        if constexpr (has_largest) {
          square = larger(square, largest[i]);
          largest[i] = square;
        }
        parameters[i] = n.moved(shrinks, parameters[i], mean, std::sqrt(square));
      }
    };
    with_flags(loop, decays, amsgrad);
  }
};

}  // namespace caftan::optim
