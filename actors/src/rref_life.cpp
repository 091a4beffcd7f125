// The references of a worker while they live: who is asked for a value, what their actors say, who they are, and the
// end.

#include <algorithm>

#include <caf/actor_cast.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "caftan/transport/actor_exchange.hpp"
#include "rref_handles.hpp"
#include "rref_host.hpp"

namespace caftan::actors {

using transport::Address;

namespace {
/// References that were let go and have not ended, at some 5 KiB each with their values, until creations wait for them.
constexpr std::int64_t kMostEnding = 4096;
}  // namespace

// ---- serving

void RRefHost::with_value(RRefId id, std::shared_ptr<ValueJob> job) {
  if (!tell_owner(id, OwnerEvent{owner_event::Job{job}})) {
    job->run(world_.leaving().value_or(Error(Errc::rref_deleted, "the value of RRef " + to_string(id) + " is gone")),
             [] {});
  }
}

void RRefHost::on_session_start() {
  std::vector<caf::actor> users;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [fork, user] : users_) users.push_back(user.actor);
  }
  for (const auto& actor : users) {
    if (actor) caf::anon_send(actor, UserEvent{user_event::SessionOpened{}});
  }
}

void RRefHost::on_session_end(const transport::Session& session) {
  const rpc::PeerSession ended = peer_session(session);
  std::vector<caf::actor> users;
  std::vector<rpc::ForkRequest> refused;
  std::vector<ForkId> forgotten;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [fork, user] : users_) users.push_back(user.actor);
    refused = ledger_.session_ended(ended);
    for (auto& [fork, child] : parked_) {
      if (child.session == ended) forgotten.push_back(fork);
    }
    creations_.erase(ended.connection);
  }
  for (const ForkId& fork : forgotten) (void)take_parked(fork);
  for (const auto& actor : users) {
    if (actor) caf::anon_send(actor, UserEvent{user_event::OwnerLost{ended}});
  }
  for (const auto& request : refused) {
    answer_fork(request.fork, request.session, Errc::rref_deleted);
    (void)take_parked(request.fork);
  }
}

caf::strong_actor_ptr RRefHost::take_parked(const ForkId& fork) {
  const std::lock_guard lock(mutex_);
  auto node = parked_.extract(fork);
  return node ? std::move(node.mapped().proxy) : nullptr;
}

std::size_t RRefHost::end_all(const Error& reason) {
  std::vector<caf::actor> users;
  std::vector<caf::actor> owners;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [fork, user] : users_) users.push_back(user.actor);
    for (const auto& [id, owner] : owners_) owners.push_back(owner.actor);
    owners_.clear();
  }
  for (const auto& actor : users) caf::anon_send(actor, UserEvent{user_event::Finish{reason}});
  for (const auto& actor : owners) caf::anon_send(actor, OwnerEvent{owner_event::Finish{reason}});
  notify_if_empty();
  return users.size() + owners.size();
}

void RRefHost::when_empty(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    empty_ = std::move(done);
  }
  notify_if_empty();
}

void RRefHost::notify_if_empty() {
  // Called under the lock, so that a waiter that gives up knows that no notification is under way.
  const std::lock_guard lock(mutex_);
  if (empty_ && owners_.empty() && users_.empty()) std::exchange(empty_, nullptr)();
}

void RRefHost::when_settled(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    settled_ = std::move(done);
  }
  notify_of_end();
}

Result<void> RRefHost::wait_for_ends(TimePoint deadline) {
  if (ending() <= kMostEnding) return {};
  Promise<void> promise(world_.shared_caller());
  const Future<void> fewer = promise.future();
  {
    const std::lock_guard lock(mutex_);
    if (ending() <= kMostEnding) return {};
    waiting_for_ends_.push_back(std::move(promise));
  }
  if (fewer.state()->wait(deadline) || world_.actor_host().executor().clock().now() < deadline) return {};
  return Error(Errc::timeout, "its time was over before enough of the " + std::to_string(ending()) +
                                  " references that were let go had ended: are all runners busy with plain code?");
}

void RRefHost::notify_of_end() {
  std::vector<Promise<void>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_for_ends_.empty() && ending() <= kMostEnding / 2) waiting.swap(waiting_for_ends_);
    // Called under the lock, so that a waiter that gives up knows that no notification is under way.
    if (settled_ && let_go_ == 0) std::exchange(settled_, nullptr)();
  }
  for (Promise<void>& promise : waiting) promise.set({});
}

std::size_t RRefHost::owners() const {
  const std::lock_guard lock(mutex_);
  return owners_.size();
}

std::size_t RRefHost::users() const {
  const std::lock_guard lock(mutex_);
  return users_.size();
}

std::size_t RRefHost::parked() const {
  const std::lock_guard lock(mutex_);
  return ledger_.parked_count();
}

std::vector<RRefInfo> RRefHost::list() const {
  const TimePoint now = world_.shared_caller()->executor().clock().now();
  const std::string self = world_.shared_caller()->name();
  std::vector<RRefInfo> infos;
  std::vector<std::shared_ptr<UserHandle>> keep;  // released after the lock: the end of the last handle takes it
  const std::lock_guard lock(mutex_);
  for (const auto& [id, owner] : owners_) {
    RRefInfo info{id, true, {}, self, owner.type, owner.state, now - owner.born, owner.actor->id(), {}};
    for (const auto& [fork, fork_info] : owner.forks) info.forks.push_back(fork_info);
    infos.push_back(std::move(info));
  }
  for (const auto& [fork, user] : users_) {
    const auto handle = keep.emplace_back(user.handle.lock());
    std::string state = "released";  // no handle, but a child is not accepted yet
    if (handle) {
      const char* const unanswered = user.is_creators ? "creating" : "awaiting";
      state = handle->failed() ? "failed" : handle->confirmed_by_owner() ? "confirmed" : unanswered;
    }
    infos.push_back({user.rref,
                     false,
                     fork,
                     handle ? handle->owner().name() : std::string(),
                     handle ? std::string(handle->type().name) : std::string(),
                     std::move(state),
                     now - user.born,
                     user.actor ? user.actor->id() : 0,
                     {}});
  }
  return infos;
}

// ---- for the actors

bool RRefHost::on_fork_requested(const ForkRequested& message, const rpc::PeerSession& asker,
                                 const caf::strong_actor_ptr& child) {
  const rpc::ForkRequest request{message.rref, message.creation, message.fork, message.parent, asker};
  if (tell_owner(message.rref, OwnerEvent{owner_event::Requested{request, child}})) return false;
  {
    const std::lock_guard lock(mutex_);
    if (ledger_.park(request)) {
      parked_[message.fork] = {asker, child};
      return true;
    }
  }
  // Another session may have brought the creation since the first look: then the ledger counts it and it is there now.
  if (tell_owner(message.rref, OwnerEvent{owner_event::Requested{request, child}})) return false;
  answer_fork(message.fork, asker, Errc::rref_deleted);
  return false;
}

void RRefHost::asker_gone(const ForkId& fork, const rpc::PeerSession& asker) {
  {
    const std::lock_guard lock(mutex_);
    if (!ledger_.expired(fork, asker)) return;
  }
  (void)take_parked(fork);
}

void RRefHost::answer_fork(ForkId fork, const rpc::PeerSession& session, Errc code) {
  const auto proxy = fork_proxy(fork, session);
  caf::anon_send(caf::actor_cast<caf::actor>(proxy), ForkAnswered{fork, code});
}

std::optional<rpc::PeerSession> RRefHost::send_fork_request(caf::event_based_actor& child, const ForkRequested& request,
                                                            const std::pair<WorkerId, Incarnation>& owner) {
  const auto session = world_.session_with(owner.first, owner.second);
  if (!session) return std::nullopt;
  bind(request.fork, peer_session(*session));
  const auto self = caf::actor_cast<caf::strong_actor_ptr>(&child);
  session->actors().export_watched(Address::of(request.fork), self);
  const auto root = session->actors().proxy(Address::root());
  root->enqueue(self, caf::make_message_id(), caf::make_message(request), nullptr);
  return peer_session(*session);
}

void RRefHost::owner_ending(RRefId id) {
  caf::actor last;
  {
    const std::lock_guard lock(mutex_);
    const auto owner = owners_.find(id);
    if (owner == owners_.end()) return;
    last = std::move(owner->second.actor);
    owners_.erase(owner);
  }
  notify_if_empty();
}

void RRefHost::owner_settled(RRefId id, const Result<std::shared_ptr<rpc::HostedObject>>& value) {
  const std::lock_guard lock(mutex_);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return;
  owner->second.state = value ? "ready" : "failed";
  if (value) return;
  if (!owner->second.error) owner->second.error = std::make_shared<ValueError>();
  owner->second.error->set(value.error());
}

void RRefHost::fork_counted(RRefId id, ForkInfo fork) {
  const std::lock_guard lock(mutex_);
  if (const auto owner = owners_.find(id); owner != owners_.end()) owner->second.forks[fork.fork] = fork;
}

void RRefHost::fork_ended(RRefId id, ForkId fork) {
  const std::lock_guard lock(mutex_);
  if (const auto owner = owners_.find(id); owner != owners_.end()) owner->second.forks.erase(fork);
}

/// Adds to let_go_ before it says that the handle is gone. The end of the actor subtracts only after that, so the count
/// is never too small for `settle`.
void RRefHost::handle_let_go(std::atomic<FirstGone>& first) {
  let_go_.fetch_add(1);
  if (first.exchange(FirstGone::handle) == FirstGone::neither) return;
  let_go_.fetch_sub(1);  // the actor has ended before
  notify_of_end();
}

void RRefHost::user_ending(ForkId id) {
  User last;
  {
    const std::lock_guard lock(mutex_);
    const auto user = users_.find(id);
    if (user == users_.end()) return;
    last = std::move(user->second);
    users_.erase(user);
  }
  if (last.first_gone->exchange(FirstGone::actor) == FirstGone::handle) let_go_.fetch_sub(1);
  notify_of_end();
  notify_if_empty();
}

void RRefHost::user_confirmed(ForkId id, Result<void> outcome) {
  std::shared_ptr<UserHandle> handle;
  {
    const std::lock_guard lock(mutex_);
    if (const auto user = users_.find(id); user != users_.end()) handle = user->second.handle.lock();
  }
  if (handle) handle->settle(std::move(outcome));
}

void RRefHost::bind(ForkId fork, const rpc::PeerSession& session) {
  std::shared_ptr<UserHandle> handle;
  {
    const std::lock_guard lock(mutex_);
    if (const auto user = users_.find(fork); user != users_.end()) handle = user->second.handle.lock();
  }
  if (handle) handle->bind(session);
}

caf::strong_actor_ptr RRefHost::fork_proxy(ForkId fork, const rpc::PeerSession& session) {
  return world_.fork_proxy(fork, session);
}

}  // namespace caftan::actors
