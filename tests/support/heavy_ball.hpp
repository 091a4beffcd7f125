/// An algorithm as users write one, for tests.
#pragma once

#include <string>
#include <vector>

#include "caftan/optim/custom_algorithm.hpp"

namespace caftan::optim {

/// m = beta * m + gradient; parameter -= lr * m.
class HeavyBall final : public CustomAlgorithm {
 public:
  std::vector<std::string> slots() const override { return {"m"}; }
  Result<void> check(const Custom& options) const override {
    for (const auto& [name, value] : options.options) {
      if (name != "beta") return Error(Errc::bad_arguments, options.name + ": there is no option " + name);
      if (!(value >= 0 && value < 1)) {
        return Error(Errc::bad_arguments,
                     options.name + ": beta is " + std::to_string(value) + ", it must be in [0, 1)");
      }
    }
    return {};
  }
  void step(const Custom& options, const CustomStep& step) const override {
    const auto beta = options.options.find("beta");
    const at::Tensor& mean = step.state[0];
    mean.mul_(beta == options.options.end() ? 0.9 : beta->second).add_(step.gradient);
    step.parameter.add_(mean, -options.lr);
  }
};

}  // namespace caftan::optim
