/// `ParkedForks`: the fork requests that arrived before the creation of their value (RR-9), each with the proxy of the
/// child that waits for the reply. The decisions are those of rpc::CreationLedger.
#pragma once

#include <unordered_map>
#include <vector>

#include <caf/actor_control_block.hpp>

#include "caftan/base/mutex.hpp"
#include "caftan/rpc/internal/creation_ledger.hpp"

namespace caftan::actors {

/// Threads: any, all methods. No proxy is released under the lock.
class ParkedForks {
 public:
  struct Parked {
    rpc::ForkRequest request;
    // The child's proxy; kept, because CAF delivers a down message only while the proxy exists.
    caf::strong_actor_ptr child;
  };

  /// Returns false if the creation was read before or can no longer arrive: then the request is not kept.
  bool park(const rpc::ForkRequest& request, const caf::strong_actor_ptr& child);
  /// The frame of a creation was read. Returns the requests that waited for it, oldest first.
  std::vector<Parked> created(RRefId rref, rpc::CreationNumber creation);
  /// Forgets the requests of the session's worker. Returns those of other workers that waited for a creation in the
  /// session: reply `rref_deleted` to each.
  std::vector<Parked> session_ended(const rpc::PeerSession& session);
  /// The child gave up at its deadline or ended, so no reply is needed.
  void child_gone(const ForkId& fork, const rpc::PeerSession& session);
  std::size_t count() const;

 private:
  std::vector<Parked> take(const std::vector<rpc::ForkRequest>& requests) CAFTAN_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  rpc::CreationLedger ledger_ CAFTAN_GUARDED_BY(mutex_);
  // The requests that ledger_ has parked, each with the child's proxy.
  std::unordered_map<ForkId, Parked> parked_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
