/// `StrongWolfe`: the search along one direction for a point that fulfils the strong Wolfe conditions, one evaluation
/// of the function after the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace caftan::optim {

/// The function at one place of a line.
struct LinePoint {
  double t = 0;  ///< steps along the direction
  double loss = 0;
  at::Tensor gradient;  ///< flat
  double slope = 0;     ///< along the direction
};

/// Evaluate at `next()` and pass the outcome to `evaluated` until that returns false; `best` is the place then. The
/// arithmetic is that of torch::optim::LBFGS, bit for bit.
/// Source: the line search "strong_wolfe" of torch.optim.LBFGS; Nocedal and Wright, Numerical Optimization, algorithms
/// 3.5 and 3.6.
class StrongWolfe {
 public:
  /// @param direction  flat, not changed while this lives
  /// @param t  where to look first, > 0
  /// @param start  the function at t = 0
  StrongWolfe(at::Tensor direction, double t, LinePoint start);

  double next() const noexcept { return t_; }
  /// Takes the function at `next()`. Returns whether another place has to be evaluated.
  bool evaluated(double loss, const at::Tensor& gradient);
  const LinePoint& best() const noexcept { return bracket_[low_]; }
  /// Returns how often `evaluated` was called.
  std::int64_t evaluations() const noexcept { return evaluations_; }

 private:
  bool widen(const LinePoint& at);
  bool narrow(const LinePoint& at);
  bool begin_to_narrow(LinePoint from, LinePoint to);
  bool choose_next();
  void order_bracket() noexcept { low_ = bracket_[0].loss <= bracket_[1].loss ? 0 : 1; }
  bool is_high(const LinePoint& at) const;
  bool is_flat(const LinePoint& at) const;

  const at::Tensor direction_;
  const LinePoint start_;
  double longest_;  // element of the direction
  double t_;
  LinePoint previous_;
  std::array<LinePoint, 2> bracket_;
  std::size_t low_ = 0;
  std::int64_t evaluations_ = 0;
  bool narrowing_ = false;
  bool stuck_ = false;  // the last place was close to an end of the bracket
};

}  // namespace caftan::optim
