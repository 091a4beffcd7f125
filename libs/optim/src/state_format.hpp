/// The bytes of a saved optimizer: docs/protocols/optimizer.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstring>
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

/// Reads a number and moves past it. Returns false where too few bytes are left.
template <class Number>
bool take(wire::ByteView& from, Number& number) {
  if (from.size() < sizeof(Number)) return false;
  std::memcpy(&number, from.data(), sizeof(Number));
  from = from.subspan(sizeof(Number));
  return true;
}

/// Appends a number.
template <class Number>
void put(wire::Bytes& to, Number number) {
  wire::append(to, std::as_bytes(std::span(&number, 1)));
}

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
