#include "caftan/rpc/internal/fork_table.hpp"

#include <cassert>

namespace caftan::rpc {
namespace {

Error holds_none() {
  return Error(Errc::not_permitted,
               "the caller holds no reference to this value (docs/protocols/permissions.md, PM-5)");
}

Error deleted() { return Error(Errc::rref_deleted, "the referenced value has ended"); }

}  // namespace

OwnerActions ForkTable::created_by(ForkId creator, PeerSession session) {
  count(creator, ForkId{}, session);
  return {MonitorFork{creator, session}};
}

void ForkTable::created_here() { ++uses_[static_cast<std::size_t>(Use::hold)]; }

OwnerActions ForkTable::creation_finished() {
  OwnerActions actions;
  creating_ = false;
  end_if_unused(actions);
  return actions;
}

OwnerActions ForkTable::handed_over(ForkId fork, PeerSession session) {
  // The sender of the reference holds the value, so the value cannot have ended. If it has nevertheless, the reader of
  // the frame gets a `down`.
  if (ended_) return {};
  count(fork, ForkId{}, session);
  return {MonitorFork{fork, session}};
}

OwnerActions ForkTable::requested(ForkId fork, ForkId parent, PeerSession session) {
  if (ended_) return {AnswerFork{fork, session, Errc::rref_deleted}};
  if (is_guarded_from(session.peer) && !forks_.contains(parent) && !has(fork, session)) {
    return {AnswerFork{fork, session, Errc::not_permitted}};
  }
  OwnerActions actions;
  if (count(fork, parent, session)) actions.push_back(MonitorFork{fork, session});
  actions.push_back(AnswerFork{fork, session, Errc::ok});
  return actions;
}

Result<OwnerActions> ForkTable::passed_back(ForkId fork, ForkId parent, PeerSession session) {
  if (ended_) return deleted();
  if (is_guarded_from(session.peer) && !has(parent, session)) return holds_none();
  OwnerActions actions;
  ++uses_[static_cast<std::size_t>(Use::hold)];
  const auto made_here = forks_.find(fork);
  if (made_here != forks_.end() && made_here->second.session == session) {
    erase(made_here);
    actions.push_back(DemonitorFork{fork, session});
  }
  return actions;
}

OwnerActions ForkTable::down(ForkId fork, PeerSession session) {
  OwnerActions actions;
  const auto at = forks_.find(fork);
  if (at == forks_.end() || at->second.session != session) return actions;
  erase(at);
  end_if_unused(actions);
  return actions;
}

Result<void> ForkTable::may_use(const WorkerLife& peer) const {
  if (!is_guarded_from(peer) || holders_.contains(peer)) return {};
  return holds_none();
}

bool ForkTable::count(ForkId fork, ForkId parent, const PeerSession& session) {
  if (!forks_.emplace(fork, Entry{parent, session}).second) return false;
  ++holders_[session.peer];
  return true;
}

void ForkTable::erase(Forks::iterator fork) {
  const auto holder = holders_.find(fork->second.session.peer);
  if (--holder->second == 0) holders_.erase(holder);
  forks_.erase(fork);
}

Result<void> ForkTable::acquired(Use use) {
  if (ended_) return deleted();
  ++uses_[static_cast<std::size_t>(use)];
  return {};
}

OwnerActions ForkTable::released(Use use) {
  OwnerActions actions;
  std::size_t& count = uses_[static_cast<std::size_t>(use)];
  assert(count > 0);
  --count;
  end_if_unused(actions);
  return actions;
}

bool ForkTable::has(ForkId fork, PeerSession session) const {
  const auto at = forks_.find(fork);
  return at != forks_.end() && at->second.session == session;
}

std::vector<ForkTable::Fork> ForkTable::forks() const {
  std::vector<Fork> all;
  all.reserve(forks_.size());
  for (const auto& [id, entry] : forks_) all.push_back({id, entry.parent, entry.session});
  return all;
}

// RR-8: only this function decides that a value ends.
void ForkTable::end_if_unused(OwnerActions& actions) {
  if (ended_ || creating_ || !forks_.empty() || uses_[0] + uses_[1] + uses_[2] != 0) return;
  ended_ = true;
  actions.push_back(EndValue{});
}

}  // namespace caftan::rpc
