/// The section `rrefs` of a frame: every reference in it, ahead of everything else (RR-3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caftan/rpc/internal/creation_ledger.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::actors {

/// One reference handed over.
struct SharedRRef {
  RRefId rref;
  ForkId fork;  ///< of the receiver
  WorkerId owner;
  Incarnation owner_incarnation;
  ForkId parent;  ///< the sender's fork; none: the sender is the owner
  rpc::CreationNumber creation;
  std::uint64_t type_hash = 0;
  std::string type_name;

  /// Returns whether this is the fork that the creation of the value made.
  bool is_creators() const noexcept { return !parent && fork && fork.worker != owner; }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& rref& fork& owner& owner_incarnation& parent& creation.connection& creation.number& type_hash& type_name;
  }
};

/// The value that a create frame asks for.
struct Creation {
  RRefId rref;
  ForkId fork;  ///< the creator's own; none: the creator is the owner and holds it already
  rpc::CreationNumber number;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& rref& fork& number.connection& number.number;
  }
};

struct Manifest {
  std::optional<Creation> creation;
  std::vector<SharedRRef> shared;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& creation& shared;
  }
};

}  // namespace caftan::actors
