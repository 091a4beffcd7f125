/// V-trace: targets of values, and advantages, from steps that a policy took which is not the one that learns. With
/// equal policies they are those of TD(lambda) and of generalised advantage estimation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::rl {

/// T steps of n environments; each array is [T, n], row by row.
struct VtraceSteps {
  std::size_t steps = 0;         ///< T
  std::size_t environments = 0;  ///< n
  std::span<const float>
      log_ratios{};  ///< log of p(action) of the policy that learns, minus that of the one that acted
  std::span<const float> rewards{};
  std::span<const float> values{};       ///< of the observation that the action answered
  std::span<const float> next_values{};  ///< of what followed the action: 0 where the task has ended
  std::span<const std::uint8_t> ends{};  ///< not 0: the episode has ended, for either reason
};

/// What the targets are of.
struct VtraceOptions {
  double discount = 0.99;
  double lambda = 1;       ///< 0..1: 1 is the V-trace of the paper
  double ratio_limit = 1;  ///< the largest weight of a step (rho-bar), > 0
  double trace_limit = 1;  ///< the largest weight of what follows a step (c-bar), > 0
};

/// [T, n] each.
struct VtraceTargets {
  std::vector<float> values{};      ///< what the values shall become
  std::vector<float> advantages{};  ///< ratio x (reward + discount x target of what followed - value)
};

/// Errors: bad_arguments (an array of another size, no step).
/// Source: Espeholt et al., IMPALA, arXiv 1802.01561, section 4.1 and remark 2.
Result<VtraceTargets> vtrace(const VtraceSteps& steps, const VtraceOptions& options);

}  // namespace caftan::rl
