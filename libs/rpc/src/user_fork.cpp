#include "caftan/rpc/internal/user_fork.hpp"

#include <utility>

namespace caftan::rpc {

bool may_pass_back(const std::optional<PeerSession>& registered, const PeerSession& session) {
  return registered == session;
}

UserFork UserFork::created(ForkId id, PeerSession owner, std::string owner_name) {
  UserFork fork(id, State::creating, std::move(owner_name));
  fork.owner_ = owner;
  return fork;
}

UserFork UserFork::from_owner(ForkId id, PeerSession owner, std::string owner_name) {
  UserFork fork(id, State::confirmed, std::move(owner_name));
  fork.owner_ = owner;
  return fork;
}

UserFork UserFork::from_parent(ForkId id, Parent parent, std::string owner_name) {
  UserFork fork(id, State::awaiting, std::move(owner_name));
  fork.parent_ = parent;
  fork.parent_linked_ = true;
  return fork;
}

UserActions UserFork::start() const {
  if (state_ != State::awaiting) return {};
  return {SendForkRequest{id_, parent_->fork, parent_->session.peer.id}};
}

UserActions UserFork::answered(Result<void> reply) {
  if (state_ != State::awaiting) return {};
  if (!reply) return fail(reply.error());
  UserActions actions;
  state_ = State::confirmed;
  // RR-5: the parent is released before anything that user code could do with the child.
  if (parent_linked_) actions.push_back(SendAccept{id_, parent_->fork, parent_->session});
  parent_linked_ = false;
  actions.push_back(ForkConfirmed{});
  end_if_unused(actions);
  return actions;
}

UserActions UserFork::creation_answered(Result<void> reply) {
  if (state_ != State::creating) return {};
  if (!reply) return fail(reply.error());
  UserActions actions;
  state_ = State::confirmed;
  actions.push_back(ForkConfirmed{});
  end_if_unused(actions);
  return actions;
}

UserActions UserFork::deadline() {
  if (state_ != State::awaiting) return {};
  const char* what =
      owner_ ? " did not confirm the reference in time" : " could not be reached to confirm the reference";
  return fail(Error(Errc::peer_unreachable, "owner " + owner_name_ + what));
}

UserActions UserFork::owner_lost(PeerSession session) {
  if (owner_ != session) return {};
  return fail(lost());
}

Result<void> UserFork::may_use() const {
  if (state_ == State::failed) return error_;
  if (state_ == State::awaiting) return Error(Errc::bad_arguments, "the reference is not confirmed yet");
  return {};
}

UserActions UserFork::child_handed_over(ForkId child, PeerSession session) {
  children_.emplace(child, session);
  return {LinkChild{child, session}};
}

UserActions UserFork::child_accepted(ForkId child, PeerSession session) {
  UserActions actions;
  const auto at = children_.find(child);
  if (at == children_.end() || at->second != session) return actions;
  children_.erase(at);
  actions.push_back(UnlinkChild{child, session});
  end_if_unused(actions);
  return actions;
}

UserActions UserFork::child_exited(ForkId child, PeerSession session) {
  UserActions actions;
  const auto at = children_.find(child);
  if (at == children_.end() || at->second != session) return actions;
  children_.erase(at);
  end_if_unused(actions);
  return actions;
}

UserActions UserFork::handle_dropped() {
  UserActions actions;
  has_handle_ = false;
  end_if_unused(actions);
  return actions;
}

Error UserFork::lost() const { return Error(Errc::peer_down, "the connection with owner " + owner_name_ + " ended"); }

UserActions UserFork::fail(Error error) {
  UserActions actions;
  if (state_ == State::failed) return actions;
  const bool someone_waits = state_ == State::awaiting || state_ == State::creating;
  state_ = State::failed;
  error_ = std::move(error);
  if (someone_waits) actions.push_back(ForkRefused{error_});
  end_if_unused(actions);
  return actions;
}

// RR-7: only this function decides that a fork ends. A parent that is still linked gets the actor's exit.
void UserFork::end_if_unused(UserActions& actions) {
  const bool answered = state_ == State::confirmed || state_ == State::failed;
  if (ended_ || has_handle_ || !answered || !children_.empty()) return;
  ended_ = true;
  actions.push_back(EndFork{});
}

}  // namespace caftan::rpc
