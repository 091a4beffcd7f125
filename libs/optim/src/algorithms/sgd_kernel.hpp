/// The kernel of SGD for dense gradients.
#pragma once

#include "kernels.hpp"

namespace caftan::optim {

/// State rows: the momentum, where it is not 0.
struct SgdKernel {
  double weight_decay;
  double momentum;
  double taken;  ///< the part of the gradient that enters the momentum
  double rate;   ///< what the direction is multiplied by before it is added: negative
  bool nesterov;
  bool maximize;
  bool begins;  ///< the row of the momentum has no values yet

  bool fits_float() const { return fit_float(weight_decay, momentum, taken, rate); }

  template <class T>
  void step(const Row<T>& row, const T*) const {
    const auto loop = [&](auto decays, auto keeps, auto sets, auto looks_ahead) {
      T* __restrict__ const parameter = row.parameter;
      const T* __restrict__ const gradients = row.gradient;
      T* __restrict__ const buffer = row.first;
      const T sign = maximize ? -1 : 1;
      const T decay = static_cast<T>(weight_decay);
      const T kept_part = static_cast<T>(momentum);
      const T taken_part = static_cast<T>(taken);
      const T factor = static_cast<T>(rate);
      for (std::size_t i = 0; i < row.size; ++i) {
        T direction = sign * gradients[i];
        if constexpr (decays) direction = std::fma(decay, parameter[i], direction);
        if constexpr (keeps) {
          const T mean = sets ? direction : std::fma(taken_part, direction, buffer[i] * kept_part);
          buffer[i] = mean;
          direction = looks_ahead ? std::fma(kept_part, mean, direction) : mean;
        }
        parameter[i] = std::fma(factor, direction, parameter[i]);
      }
    };
    with_flags(loop, weight_decay != 0, momentum != 0, begins, nesterov);
  }
};

}  // namespace caftan::optim
