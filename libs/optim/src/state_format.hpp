/// The bytes of a saved optimizer: docs/protocols/optimizer.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "caftan/optim/local_optimizer.hpp"

namespace caftan::optim {

struct SavedOptimizer {
  std::vector<Algorithm> algorithms;    ///< of each group
  std::vector<std::uint32_t> group_of;  ///< of each parameter
  std::vector<ParameterState> states;   ///< of each parameter
  /// Initial rate of each group; empty = no schedule was made, or the state has version 1.
  std::vector<double> initial_lrs;
};

struct SavedContent {
  std::uint32_t version;
  wire::ByteView bytes;
};

/// Returns the version of a saved optimizer, and what follows it.
/// @param newest  the highest version that this build reads
/// Errors: malformed_payload (truncated, or another magic number), protocol_mismatch (a later version).
Result<SavedContent> after_prefix(wire::ByteView bytes, std::uint64_t magic, std::uint32_t newest);

/// Errors: limit_exceeded.
Result<wire::Bytes> write_state(const SavedOptimizer& optimizer, std::span<const at::Tensor> parameters);

/// Reads a state for an optimizer with these groups and parameters.
/// Errors: malformed_payload, protocol_mismatch, bad_arguments.
Result<SavedOptimizer> read_state(wire::ByteView bytes, std::span<const Algorithm> algorithms,
                                  std::span<const std::uint32_t> group_of, std::span<const at::Tensor> parameters);

}  // namespace caftan::optim
