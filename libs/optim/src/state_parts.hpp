/// `StateParts`: the bytes of a saved LocalOptimizer, taken apart by parameter (docs/protocols/optimizer.md). What is
/// checked here needs no model; state_format.hpp compares with one.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "caftan/optim/local_optimizer.hpp"

namespace caftan::optim {

/// The versions of the format, each with the fields of those before it.
enum class StateVersion : std::uint32_t {
  first = 1,
  initial_rates = 2,  ///< rates that schedules take as their base
  late_tensors = 3,   ///< a parameter may have a tensor of a late slot or lack it
  lbfgs = 4,          ///< the memory of LBFGS
};

/// What a saved state says of one parameter: enough to recognize another model.
struct SavedEntry {
  std::vector<std::int64_t> sizes;
  std::int8_t dtype = 0;
  std::uint32_t group = 0;
  std::uint64_t steps = 0;
  std::array<bool, kStateSlots> present{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& sizes& dtype& group& steps& present;
  }
};

/// The numbers of an LbfgsMemory.
struct LbfgsNumbers {
  std::uint64_t iterations = 0;
  std::uint64_t evaluations = 0;
  double t = 0;
  double previous_loss = 0;
  std::uint32_t changes = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& iterations& evaluations& t& previous_loss& changes;
  }
};

struct StateParts {
  /// One parameter.
  struct Piece {
    SavedEntry entry;
    std::array<at::Tensor, kStateSlots> tensors;  ///< those that are present
  };
  StateVersion version = StateVersion::first;
  std::vector<Algorithm> algorithms;  ///< of each group; Custom ones without code
  std::vector<Piece> pieces;          ///< in the order of the parameters
  std::vector<double> initial_lrs;    ///< of each group, or empty
  LbfgsNumbers lbfgs;
  std::vector<at::Tensor> lbfgs_tensors;
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

/// Returns malformed_payload "the saved optimizer WHAT".
Error malformed_state(const std::string& what);

/// Errors: malformed_payload (truncated, or numbers that cannot be), protocol_mismatch (a later version).
Result<StateParts> take_apart(wire::ByteView bytes);
/// Returns the bytes that `take_apart` reads. Errors: limit_exceeded.
Result<wire::Bytes> put_together(const StateParts& parts);

}  // namespace caftan::optim
