/// `replay`: applies a step log (step_log.hpp) to the parameters that its first step began from, in one process. The
/// result equals the shared module's parameters bit for bit (CM-17), which is the test of every consistency mode.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/nn/step_log.hpp"
#include "caftan/optim/local_optimizer.hpp"

namespace caftan::nn {

/// Computes the gradients of one contribution as its trainer did: of the same batch, with the same operators.
/// @param parameters  those of the version that the contribution read, in the order of the optimizer's: leaves of their
/// own,
///   of which the gradients are wanted
/// Returns one gradient for each parameter, undefined where the trainer had none.
using GradientsOf = std::function<Result<std::vector<at::Tensor>>(const Contribution& contribution,
                                                                  std::span<const at::Tensor> parameters)>;

/// Steps the optimizer's parameters once for each line of the log, at the rates that the line has, if it has some.
///
/// Memory: the parameters of a version are kept until the last contribution that read it.
/// @param log        from parse_step_log or read_step_log
/// @param optimizer  with the options of the shared module's, its parameters and state as they were at version
///                   log.first
/// Errors: that of `gradients`, and those of gradient_mean and LocalOptimizer::step, each with the step in its text.
///   The parameters are then those of the step before.
Result<void> replay(const StepLog& log, optim::LocalOptimizer& optimizer, const GradientsOf& gradients);

}  // namespace caftan::nn
