/// The section `rrefs` of a frame: every reference in it, ahead of everything else (RR-3). A worker reads one as a
/// `CheckedManifest`, which holds nothing that its sender cannot have made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/rpc/internal/creation_ledger.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::rpc {

/// One reference handed over.
struct SharedRRef {
  RRefId rref;
  ForkId fork;  ///< of the receiver
  WorkerLife owner;
  ForkId parent;  ///< the sender's fork; no id: the sender is the owner
  CreationNumber creation;
  std::uint64_t type_hash = 0;
  std::string type_name;

  /// Returns whether this is the fork that the creation of the value made.
  bool is_creators() const noexcept { return !parent && fork && fork.worker != owner.id; }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& rref& fork& owner& parent& creation.connection& creation.number& type_hash& type_name;
  }
};

/// The value that a create frame asks for.
struct Creation {
  RRefId rref;
  ForkId fork;  ///< the creator's own fork; no id: the creator is the owner and has a hold already
  CreationNumber number;

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

/// What a worker that reads a manifest already has. Threads: that of `CheckedManifest::read`.
class KnownRRefs {
 public:
  virtual ~KnownRRefs() = default;
  virtual bool is_member(WorkerId worker) const = 0;
  /// Returns whether this worker owns that value.
  virtual bool has_value(RRefId rref) const = 0;
  /// Returns whether this worker uses that fork.
  virtual bool has_fork(ForkId fork) const = 0;
};

/// A manifest that its sender may have sent: checked as a whole, before anything of it is registered.
/// Threads: none of its own.
class CheckedManifest {
 public:
  enum class From : std::uint8_t {
    user,    ///< this worker owns the value: a reference to it came back
    owner,   ///< the sender owns the value
    parent,  ///< the sender is another user
  };
  struct Reference {
    SharedRRef shared;
    From from = From::user;
  };

  /// @param sender  the session in which `bytes` arrived
  /// @param self    the life of this worker
  /// Errors: malformed_payload, with what is wrong.
  static Result<CheckedManifest> read(wire::ByteView bytes, const PeerSession& sender, const WorkerLife& self,
                                      const KnownRRefs& known);

  /// Returns the creation that the frame asks for, if any. A creation without a fork is one by which a worker calls
  /// itself.
  const std::optional<Creation>& creation() const noexcept { return creation_; }
  /// Returns the references in the order of the manifest.
  const std::vector<Reference>& references() const noexcept { return references_; }

 private:
  CheckedManifest() = default;

  std::optional<Creation> creation_;
  std::vector<Reference> references_;
};

}  // namespace caftan::rpc
