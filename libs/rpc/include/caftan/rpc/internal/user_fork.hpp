/// A user's side of one RRef: one fork, from the frame that brought it to the end of its actor. A plain class: an event
/// goes in, what to do comes out; the user_rref_actor holds one and does it. Rules: docs/protocols/rref.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "caftan/base/error.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/internal/fork_table.hpp"

namespace caftan::rpc {

/// Ask the owner to count this fork, as soon as there is a session with the owner's life; then call `request_sent`.
struct SendForkRequest {
  ForkId fork;
  ForkId parent;
  WorkerId parent_worker;
};
/// Report to the parent that the owner counts this fork, then unlink from the parent's actor (RR-5).
struct SendAccept {
  ForkId fork;
  ForkId parent;
  PeerSession session;  ///< of the parent's worker
};
/// Link with the child's actor through its proxy in `session`. A proxy that is already down answers with an exit.
struct LinkChild {
  ForkId child;
  PeerSession session;
};
struct UnlinkChild {
  ForkId child;
  PeerSession session;
};
/// Release what waits for this fork: it may be shown to user code now. Comes once, never after ForkRefused.
struct ForkConfirmed {};
/// End what waits for this fork with `error`; its handle is dropped unseen. Comes once, never after ForkConfirmed.
struct ForkRefused {
  Error error;
};
/// The fork ends: quit. Comes once, as the last action. The owner gets a down message when the actor ends.
struct EndFork {};

using UserAction =
    std::variant<SendForkRequest, SendAccept, LinkChild, UnlinkChild, ForkConfirmed, ForkRefused, EndFork>;
/// Actions in the order in which the caller has to carry them out.
using UserActions = std::vector<UserAction>;

/// Returns true if a fork that is registered in `registered` may be handed to its owner in a frame of `session`: only
/// in that one, since the owner may have dropped the fork when another session ended, before this worker notices
/// (RR-4).
bool may_pass_back(const std::optional<PeerSession>& registered, const PeerSession& session);

/// One fork. Born with one handle: the creator's, or that of the frame's reader, which gives it to the call that waits
/// for it or drops it. Threads: none of its own; call it from one actor.
class UserFork {
 public:
  enum class State : std::uint8_t {
    creating,   ///< the creator's own fork, the creation not answered yet; user code may use the fork
    awaiting,   ///< a parent's child, not answered by the owner yet; no user code sees the fork (RR-6)
    confirmed,  ///< the owner counts it
    failed,     ///< final; `may_use` says why
  };
  struct Parent {
    ForkId fork;
    PeerSession session;  ///< the session in which the parent's frame came
  };

  /// The creator's own fork; `owner` is the session whose lane is offered the creation frame. If the lane does not
  /// accept it, call `creation_answered` with the error before user code gets the handle: a child of a creation that
  /// was never sent would wait at the owner for its deadline.
  static UserFork created(ForkId id, PeerSession owner, std::string owner_name);
  /// A fork that the owner has handed over in session `owner`: it is confirmed from the start.
  static UserFork from_owner(ForkId id, PeerSession owner, std::string owner_name);
  /// A fork made by a parent on another user's worker (or on this one). Call `start` once.
  static UserFork from_parent(ForkId id, Parent parent, std::string owner_name);

  /// Returns SendForkRequest for a parent's child, else nothing.
  UserActions start() const;
  /// The lane of `owner` accepted the fork request: from here on the fork is bound to that session.
  void request_sent(PeerSession owner) { owner_ = owner; }
  /// The owner's reply to the fork request: ok, rref_deleted or timeout. Ignored unless awaiting.
  UserActions answered(Result<void> answer);
  /// The reply to the creation: an error if it was not sent, not run or not answered in time, or if the function
  /// failed; in the last case the owner counts the fork nevertheless. Ignored in any state but `creating`.
  UserActions creation_answered(Result<void> answer);
  /// The deadline of the call that waits for this fork passed: peer_unreachable (RR-11). Ignored unless awaiting.
  UserActions deadline();
  /// A session ended. If this fork is registered in that session, or has asked for it there, the fork fails for good
  /// with peer_down (RR-10); otherwise nothing happens.
  UserActions owner_lost(PeerSession session);
  /// The parent's actor ended or its session did. The owner's reply decides all the same (RR-10), and no acceptance
  /// is sent.
  void parent_exited() { parent_linked_ = false; }

  /// Returns ok if user code may use the fork and hand it on. Errors: what made it fail; bad_arguments if it is
  /// unconfirmed, which user code never meets.
  Result<void> may_use() const;
  /// A reference is about to be handed to another user; called before the frame is offered to the lane. If the lane
  /// does not accept the frame, call `child_exited(child, session)`. Not needed when the receiver is the owner (RR-4).
  UserActions child_handed_over(ForkId child, PeerSession session);
  /// The owner counts the child. Ignored if it is not pending.
  UserActions child_accepted(ForkId child, PeerSession session);
  /// The child's actor ended before it was accepted, or its session did. Ignored if it is not pending.
  UserActions child_exited(ForkId child, PeerSession session);

  /// The last copy of the handle is gone (RR-13); a fetch or method call in flight holds one. Repeating it changes
  /// nothing.
  UserActions handle_dropped();

  ForkId id() const noexcept { return id_; }
  State state() const noexcept { return state_; }
  /// Returns whether the owner has replied that it counts this fork; the handle then shows itself as confirmed (RR-14).
  bool is_confirmed() const noexcept { return state_ == State::confirmed; }
  bool has_handle() const noexcept { return has_handle_; }
  bool ended() const noexcept { return ended_; }
  std::size_t pending_children() const noexcept { return children_.size(); }
  /// Returns the session in which this fork is registered, or in which it has asked to be; none until the request was
  /// sent.
  const std::optional<PeerSession>& owner() const noexcept { return owner_; }
  /// The parent, while it is linked.
  std::optional<Parent> linked_parent() const { return parent_linked_ ? parent_ : std::nullopt; }

 private:
  UserFork(ForkId id, State state, std::string owner_name)
      : id_(id), owner_name_(std::move(owner_name)), state_(state) {}
  Error lost() const;
  UserActions fail(Error error);
  void end_if_unused(UserActions& actions);

  ForkId id_;
  std::string owner_name_;
  State state_;
  Error error_;
  std::optional<PeerSession> owner_;
  std::optional<Parent> parent_;
  bool parent_linked_ = false;
  std::map<ForkId, PeerSession> children_;
  bool has_handle_ = true;
  bool ended_ = false;
};

}  // namespace caftan::rpc
