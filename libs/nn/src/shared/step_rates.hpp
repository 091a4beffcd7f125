/// The rates of one step of a shared module: they stay if the step is made, and not if it is refused.
#pragma once

#include <optional>

#include "caftan/base/result.hpp"
#include "caftan/nn/step_log.hpp"
#include "caftan/optim/local_optimizer.hpp"

namespace caftan::nn {

/// Sets the rates of the only group. Errors: bad_arguments (a momentum of an algorithm that has none). Whether they are
/// in their ranges says the next LocalOptimizer::prepare.
Result<void> set_rates(optim::LocalOptimizer& optimizer, const StepRates& rates);

/// Puts the rates of an optimizer back when it ends, unless `keep_new` was called. Threads: one at a time.
class RatesOfAStep {
 public:
  /// @param optimizer  of one group; outlives this
  explicit RatesOfAStep(optim::LocalOptimizer& optimizer)
      : optimizer_(optimizer), lr_(optimizer.lr(0)), momentum_(optimizer.momentum(0)) {}
  ~RatesOfAStep() {
    if (keeps_new_) return;
    optimizer_.set_lr(0, lr_);
    if (momentum_) optimizer_.set_momentum(0, *momentum_);
  }
  RatesOfAStep(const RatesOfAStep&) = delete;
  RatesOfAStep& operator=(const RatesOfAStep&) = delete;

  void keep_new() noexcept { keeps_new_ = true; }

 private:
  optim::LocalOptimizer& optimizer_;
  const double lr_;
  const std::optional<double> momentum_;
  bool keeps_new_ = false;
};

}  // namespace caftan::nn
