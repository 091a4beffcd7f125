/// What a worker knows about remote creations it has not read yet or whose values have ended (RR-9): one number per
/// creator's life instead of a tombstone per value, and the fork requests that arrived before the creation of their
/// value.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "caftan/rpc/internal/fork_table.hpp"

namespace caftan::rpc {

/// The place of a remote creation among those of one creator's life at one owner.
///
/// `connection` is the connection number of the creator's session with the owner; `number` counts from 1 in it, drawn
/// in the order in which the lane accepts the frames. Zero: made by the owner itself.
struct CreationNumber {
  std::uint64_t connection = 0;
  std::uint64_t number = 0;
  auto operator<=>(const CreationNumber&) const = default;
};

/// A `fork` request as the owner's worker reads it.
struct ForkRequest {
  RRefId rref;
  CreationNumber creation;
  ForkId fork;
  ForkId parent;
  PeerSession session;  ///< of the asker
};

/// The ledger of one worker for the values that it owns. Call it for ids that are not in the table of owner actors.
/// Threads: none of its own; call it where frames of all sessions are dispatched in order (RR-2), under one lock.
class CreationLedger {
 public:
  /// A creation frame was read. Returns the requests that waited for it, oldest first: pass each to the new ForkTable.
  std::vector<ForkRequest> created(RRefId rref, CreationNumber creation);
  /// Takes a request for an id without an owner actor. Returns true if it was parked; false: answer `rref_deleted`.
  bool park(const ForkRequest& request);
  /// A session ended, and its received frames were read (RR-12). Requests that came in it are forgotten. Returns the
  /// requests of other sessions that waited for a creation in this one: answer each `rref_deleted`.
  std::vector<ForkRequest> session_ended(const PeerSession& session);
  /// The fork that asked has reached its deadline, or has ended. Returns its request if that was still parked; no reply
  /// is needed.
  std::optional<ForkRequest> expired(ForkId fork, const PeerSession& session);

  std::size_t parked_count() const noexcept;

 private:
  bool is_over(const RRefId& rref, CreationNumber creation) const;

  // Per creator's life: each creation up to this number was read, or will never be read.
  std::unordered_map<std::uint64_t, CreationNumber> highest_;
  std::map<RRefId, std::vector<ForkRequest>> parked_;
};

}  // namespace caftan::rpc
