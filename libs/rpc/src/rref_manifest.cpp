#include "caftan/rpc/internal/rref_manifest.hpp"

#include <unordered_set>
#include <utility>

namespace caftan::rpc {
namespace {

using From = CheckedManifest::From;

Error malformed(const char* what) { return Error(Errc::malformed_payload, what); }

/// Refuses a creation whose ids the sender has not made, or that lacks the fork of a creator on another worker.
Result<void> check_creation(const Creation& creation, const PeerSession& sender, const WorkerLife& self,
                            const KnownRRefs& known) {
  if (!creation.fork) {
    if (sender.peer == self) return {};
    return malformed("a creation without the creator's reference");
  }
  if (creation.rref.maker() != sender.peer || creation.fork.maker() != sender.peer) {
    return malformed("a creation with an id that is not the creator's new one");
  }
  if (known.has_value(creation.rref)) return malformed("a creation that came twice");
  return {};
}

/// Returns where a reference is from. Refuses one to a value of another worker whose fork or parent is not the
/// sender's.
Result<From> check_shared(const SharedRRef& shared, const PeerSession& sender, const WorkerLife& self,
                          const KnownRRefs& known) {
  if (!known.is_member(shared.owner.id)) return malformed("a reference to a value of an unknown worker");
  if (shared.owner == self) return From::user;
  if (!shared.fork || shared.fork.maker() != sender.peer) {
    return malformed("a reference whose fork was not made by its sender");
  }
  if (known.has_fork(shared.fork)) return malformed("a reference that came twice");
  if (shared.parent) return From::parent;
  if (shared.owner != sender.peer) return malformed("a reference without parent that is not from its owner");
  return From::owner;
}

}  // namespace

Result<CheckedManifest> CheckedManifest::read(wire::ByteView bytes, const PeerSession& sender, const WorkerLife& self,
                                              const KnownRRefs& known) {
  auto manifest = wire::decode<Manifest>(bytes);
  if (!manifest) return manifest.error();
  CheckedManifest checked;
  if (manifest->creation) {
    if (auto valid = check_creation(*manifest->creation, sender, self, known); !valid) return valid.error();
    checked.creation_ = manifest->creation;
  }
  std::unordered_set<ForkId> forks;
  for (SharedRRef& shared : manifest->shared) {
    const auto from = check_shared(shared, sender, self, known);
    if (!from) return from.error();
    if (*from != From::user && !forks.insert(shared.fork).second) return malformed("a reference that came twice");
    checked.references_.push_back({std::move(shared), *from});
  }
  return checked;
}

}  // namespace caftan::rpc
