/// `SavedState`: what a DistributedOptimizer saves, and its bytes (docs/protocols/optimizer.md, "Saved states").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caftan/optim/step_messages.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::optim {

/// The part of one owner.
struct SavedOwner {
  std::string worker;
  std::vector<std::uint32_t> groups;      ///< those that have parameters here
  wire::Bytes state;                      ///< what its LocalOptimizer saved
  std::vector<std::uint64_t> parameters;  ///< their numbers in the user's list; none before version 3
  std::vector<std::string> names;         ///< of the parameters; none where they have no names
};

struct SavedState {
  StepNumber step;
  std::vector<double> lrs;
  std::vector<SavedOwner> owners;
  std::vector<double> initial_lrs;  ///< empty before the first schedule, and in version 1
  Momenta momenta;                  ///< empty before the first was set, and before version 3

  /// Returns whether it says which parameters each owner had.
  bool has_parameters() const noexcept { return !owners.empty() && !owners[0].parameters.empty(); }

  /// Appends the state behind a prefix, in the newest version. Errors: limit_exceeded.
  Result<void> write(wire::Bytes& to) const;
  /// Errors: malformed_payload (truncated, damaged, no such state; the text names the owner whose part is damaged),
  ///   protocol_mismatch.
  Result<void> read(wire::ByteView bytes);
};

}  // namespace caftan::optim
