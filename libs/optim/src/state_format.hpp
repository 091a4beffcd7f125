/// The state of a LocalOptimizer and its bytes: docs/protocols/optimizer.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "caftan/optim/local_optimizer.hpp"
#include "lbfgs.hpp"

namespace caftan::optim {

struct SavedOptimizer {
  std::vector<Algorithm> algorithms;    ///< of each group
  std::vector<std::uint32_t> group_of;  ///< of each parameter
  std::vector<ParameterState> states;   ///< of each parameter
  std::vector<double> initial_lrs;      ///< of each group; empty = no schedule was made, or version 1
  LbfgsMemory lbfgs = {};               ///< only of LBFGS
};

/// Errors: limit_exceeded.
Result<wire::Bytes> write_state(const SavedOptimizer& optimizer, std::span<const at::Tensor> parameters);

/// Reads a state for an optimizer with these groups and parameters.
/// Errors: malformed_payload, protocol_mismatch, bad_arguments.
Result<SavedOptimizer> read_state(wire::ByteView bytes, std::span<const Algorithm> algorithms,
                                  std::span<const std::uint32_t> group_of, std::span<const at::Tensor> parameters);

}  // namespace caftan::optim
