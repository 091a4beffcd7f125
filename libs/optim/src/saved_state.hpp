/// `SavedState`: what a DistributedOptimizer saves, and its bytes (docs/protocols/optimizer.md, "Messages").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/optim/step_messages.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::optim {

struct SavedOwner {
  std::string worker;
  std::vector<std::uint32_t> groups;
  wire::Bytes state;  ///< what its LocalOptimizer saved
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& worker& groups& state;
  }
};

struct SavedState {
  StepNumber step;
  std::vector<double> lrs;
  std::vector<SavedOwner> owners;
  std::vector<double> initial_lrs;  ///< empty before the first schedule, and in version 1

  /// Appends the state behind a prefix of the version that has its fields. Errors: limit_exceeded.
  Result<void> write(wire::Bytes& to) const;
  /// Errors: malformed_payload, protocol_mismatch.
  Result<void> read(wire::ByteView bytes);
};

}  // namespace caftan::optim
