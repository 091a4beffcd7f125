/// The owner's side of one RRef: which forks still refer to the value, and when it ends. A plain class: an event goes
/// in, what to do comes out; the owner_rref_actor holds one and does it. The rules RR-1 to RR-13 are in
/// docs/protocols/rref.md.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "caftan/base/error.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::rpc {

/// One connection between this worker's life and a life of `peer`. Connection numbers of one pair of lives only grow.
struct PeerSession {
  WorkerLife peer;
  std::uint64_t connection = 0;
  auto operator<=>(const PeerSession&) const = default;
};

/// Monitor the fork's actor through its proxy in `session`. A proxy that is already down answers `down` at once.
struct MonitorFork {
  ForkId fork;
  PeerSession session;
};
/// Stop monitoring: the fork never became an actor. A down that is already on its way is ignored.
struct DemonitorFork {
  ForkId fork;
  PeerSession session;
};
/// Answer a fork request: `ok` or `rref_deleted`. Comes after the MonitorFork of the same request (RR-2, RR-5).
struct AnswerFork {
  ForkId fork;
  PeerSession session;
  Errc code = Errc::ok;
};
/// The value ends: quit. Comes once, as the last action.
struct EndValue {};

using OwnerAction = std::variant<MonitorFork, DemonitorFork, AnswerFork, EndValue>;
/// Actions in the order in which the caller has to carry them out.
using OwnerActions = std::vector<OwnerAction>;

/// What keeps a value alive besides its forks and its unfinished creation.
enum class Use : std::uint8_t {
  hold,    ///< a handle in user code on the owner's worker
  method,  ///< a method or function that runs on the value
  fetch,   ///< a fetch that waits for the value or copies it
};

/// The references to one value. Born with its creation unfinished, so it cannot end before `creation_finished`.
/// Threads: none of its own; call it from one actor.
class ForkTable {
 public:
  struct Fork {
    ForkId id;
    /// The fork that handed this one over; no id if the owner handed it over, and for the creator's fork.
    ForkId parent;
    PeerSession session;
  };

  /// From now on only those may use the value who hold a reference to it (permissions.md, PM-5): a child is counted
  /// while its parent is, a reference comes back from who holds it, and `may_use` looks. `owner`, this worker, may
  /// always.
  void guard(WorkerLife owner) { guarded_by_ = owner; }

  /// The frame of the creator was read (RR-9): its fork is the first fork of the value.
  OwnerActions created_by(ForkId creator, PeerSession session);
  /// The value was made on this worker; the caller has a hold, to be released with `released(Use::hold)`.
  void created_here();
  /// The value is ready or failed. Repeating it changes nothing.
  OwnerActions creation_finished();

  /// The owner is about to hand a reference to `session`; called before the frame is offered to the lane. If the lane
  /// does not accept the frame, call `down(fork, session)` (RR-4). The manifest entry carries the monitor to the peer.
  OwnerActions handed_over(ForkId fork, PeerSession session);
  /// A child asks to be counted (RR-5). Repeating it answers again and counts once. After the end: `rref_deleted`. Of a
  /// guarded value, if `parent` is not counted: `not_permitted`.
  OwnerActions requested(ForkId fork, ForkId parent, PeerSession session);
  /// A reference came back to its owner in a frame of `session`: the reader has a hold from here on. A fork of that id
  /// that the owner made itself (a call to its own worker) has arrived and no longer counts.
  /// @param parent  the fork that the sender holds
  /// Errors: rref_deleted, not_permitted (of a guarded value: no `parent` is counted for that session); no hold was
  /// taken then.
  Result<OwnerActions> passed_back(ForkId fork, ForkId parent, PeerSession session);
  /// The actor of a fork ended, or its session did. An unknown pair changes nothing (RR-7).
  OwnerActions down(ForkId fork, PeerSession session);

  /// Whether a call of `peer` may use the value. Errors: not_permitted (of a guarded value: that life holds no
  /// reference).
  Result<void> may_use(const WorkerLife& peer) const;
  /// Something begins to use the value. Errors: rref_deleted; then nothing is to be released.
  Result<void> acquired(Use use);
  /// Precondition: a matching `acquired`, `passed_back` or `created_here` before.
  OwnerActions released(Use use);

  bool has(ForkId fork, PeerSession session) const;
  bool ended() const noexcept { return ended_; }
  bool creating() const noexcept { return creating_; }
  std::size_t in_use(Use use) const noexcept { return uses_[static_cast<std::size_t>(use)]; }
  /// Returns the forks in the order of their ids, for the live listing.
  std::vector<Fork> forks() const;

 private:
  void end_if_unused(OwnerActions& actions);
  /// Counts the fork once. Returns whether it is new.
  bool count(ForkId fork, ForkId parent, const PeerSession& session);

  struct Entry {
    ForkId parent;
    PeerSession session;
  };
  using Forks = std::map<ForkId, Entry>;
  void erase(Forks::iterator fork);
  bool is_guarded_from(const WorkerLife& peer) const { return guarded_by_ && *guarded_by_ != peer; }

  Forks forks_;
  std::map<WorkerLife, std::size_t> holders_;  // how many of them each life has
  std::optional<WorkerLife> guarded_by_;
  std::size_t uses_[3] = {0, 0, 0};
  bool creating_ = true;
  bool ended_ = false;
};

}  // namespace caftan::rpc
