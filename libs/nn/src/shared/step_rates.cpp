#include "shared/step_rates.hpp"

namespace caftan::nn {

Result<void> set_rates(optim::LocalOptimizer& optimizer, const StepRates& rates) {
  if (rates.momentum && !optimizer.momentum(0)) {
    return Error(Errc::bad_arguments, "a step with a momentum, and the algorithm of the shared module has none");
  }
  optimizer.set_lr(0, rates.lr);
  if (rates.momentum) optimizer.set_momentum(0, *rates.momentum);
  return {};
}

}  // namespace caftan::nn
