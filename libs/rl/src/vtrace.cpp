#include "caftan/rl/vtrace.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace caftan::rl {

Result<VtraceTargets> vtrace(const VtraceSteps& steps, const VtraceOptions& options) {
  const std::size_t n = steps.environments;
  const std::size_t size = steps.steps * n;
  if (size == 0) return Error(Errc::bad_arguments, "no step to learn from");
  for (const std::size_t other : {steps.log_ratios.size(), steps.rewards.size(), steps.values.size(),
                                  steps.next_values.size(), steps.ends.size()}) {
    if (other == size) continue;
    return Error(Errc::bad_arguments, "an array of " + std::to_string(other) + " values for " +
                                          std::to_string(steps.steps) + " steps of " + std::to_string(n) +
                                          " environments");
  }
  VtraceTargets targets;
  targets.values.resize(size);
  targets.advantages.resize(size);
  std::vector<double> corrections(n, 0.0);  // of each environment: target minus value of what followed
  for (std::size_t step = steps.steps; step-- > 0;) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = step * n + i;
      const double ratio = std::exp(static_cast<double>(steps.log_ratios[at]));
      const double weight = std::min(options.ratio_limit, ratio);
      const double trace = options.lambda * std::min(options.trace_limit, ratio);
      const double following = steps.ends[at] != 0 ? 0.0 : corrections[i];
      const double delta = static_cast<double>(steps.rewards[at]) +
                           options.discount * static_cast<double>(steps.next_values[at]) -
                           static_cast<double>(steps.values[at]);
      targets.advantages[at] = static_cast<float>(weight * (delta + options.discount * following));
      corrections[i] = weight * delta + options.discount * trace * following;
      targets.values[at] = static_cast<float>(static_cast<double>(steps.values[at]) + corrections[i]);
    }
  }
  return targets;
}

}  // namespace caftan::rl
