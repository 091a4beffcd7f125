#include "rref/rref_host.hpp"

#include <algorithm>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include "caftan/actors/worker.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"
#include "rref/owner_rref_actor.hpp"
#include "rref/rref_handles.hpp"
#include "rref/user_rref_actor.hpp"

namespace caftan::actors {

using remote::ActorExchange;
using remote::Address;

namespace {

/// Refuses a creation whose ids the sender has not made, or that lacks the fork of a creator on another worker.
Result<void> check_creation(const Creation& creation, const transport::PeerIdentity& sender, WorkerId self) {
  if (!creation.fork) {
    if (sender.id == self) return {};
    return Error(Errc::malformed_payload, "a creation without the creator's reference");
  }
  const auto made_by_sender = [&sender](const auto& id) {
    return id.worker == sender.id && id.incarnation == sender.incarnation;
  };
  if (made_by_sender(creation.rref) && made_by_sender(creation.fork)) return {};
  return Error(Errc::malformed_payload, "a creation with an id that is not the creator's new one");
}

/// Refuses a reference to a value of another worker whose fork or parent is not the sender's.
Result<void> check_shared(const SharedRRef& shared, const rpc::PeerSession& from) {
  if (!shared.fork || shared.fork.worker != from.peer || shared.fork.incarnation != from.incarnation) {
    return Error(Errc::malformed_payload, "a reference whose fork was not made by its sender");
  }
  if (!shared.parent && (shared.owner != from.peer || shared.owner_incarnation != from.incarnation)) {
    return Error(Errc::malformed_payload, "a reference without parent that is not from its owner");
  }
  return {};
}

}  // namespace

void RRefHost::register_with(Registry&, remote::MessageRegistry& messages) {
  messages.add<ForkRequested>("rref.fork");
  messages.add<ForkAnswered>("rref.answer");
  messages.add<ForkAccepted>("rref.accept");
}

RRefId RRefHost::make_rref_id() {
  return {ports_.id(), ports_.incarnation(), next_id_.fetch_add(1, std::memory_order_relaxed)};
}

ForkId RRefHost::make_fork_id() {
  return {ports_.id(), ports_.incarnation(), next_id_.fetch_add(1, std::memory_order_relaxed)};
}

// ---- making references

void RRefHost::make_owner(RRefId id, std::string type) {
  caf::actor actor = ports_.actor_host().spawn(owner_rref_actor, this, id);
  const LockGuard lock(mutex_);
  Owner& owner = owners_[id];
  owner.actor = std::move(actor);
  owner.type = std::move(type);
  owner.born = ports_.executor().clock().now();
}

std::shared_ptr<const ValueError> RRefHost::value_error(RRefId id) {
  const LockGuard lock(mutex_);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return nullptr;
  if (!owner->second.error) owner->second.error = std::make_shared<ValueError>();
  return owner->second.error;
}

std::shared_ptr<rpc::RRefHandle> RRefHost::own(RRefId id, rpc::TypeKey type) {
  make_owner(id, std::string(type.name));
  tell_owner(id, OwnerEvent{owner_event::CreatedHere{}});
  SharedRRef shared{id, {}, ports_.id(), ports_.incarnation(), {}, {}, type.hash, std::string(type.name)};
  return std::make_shared<OwnerHandle>(*this, ports_.shared_from_this(), std::move(shared),
                                       *ports_.find_peer(ports_.id()), true, value_error(id));
}

std::shared_ptr<UserHandle> RRefHost::make_user(const SharedRRef& shared, const Peer& owner, rpc::UserFork fork,
                                                caf::strong_actor_ptr parent, caf::actor& actor) {
  auto handle = std::make_shared<UserHandle>(*this, ports_.shared_from_this(), shared, owner, fork.is_confirmed());
  // One step under the lock: the end of a session that comes now finds either no fork or its actor. Spawning only
  // posts the actor, so nothing of it runs here.
  const LockGuard lock(mutex_);
  actor = ports_.actor_host().spawn(user_rref_actor, this, std::move(fork),
                                    ForkRequested{shared.rref, shared.creation, shared.fork, shared.parent},
                                    WorkerLife{shared.owner, shared.owner_incarnation}, std::move(parent));
  handle->set_actor(actor);
  users_[shared.fork] =
      User{actor, handle, handle->first_gone(), shared.rref, ports_.executor().clock().now(), shared.is_creators()};
  return handle;
}

std::shared_ptr<rpc::RRefHandle> RRefHost::use_created(RRefId id, const std::shared_ptr<transport::Session>& session,
                                                       const Peer& owner, rpc::TypeKey type, OutgoingRRefs& handed) {
  ending_.creation_begins();
  rpc::CreationNumber number{session->connection(), 0};
  {
    const LockGuard lock(mutex_);
    number.number = ++creations_[session->connection()];
  }
  const auto& peer = session->peer();
  SharedRRef shared{id, make_fork_id(), peer.id, peer.incarnation, {}, number, type.hash, std::string(type.name)};
  caf::actor actor;
  auto handle = make_user(shared, owner, rpc::UserFork::created(shared.fork, peer_session(*session), owner.name()),
                          nullptr, actor);
  handle->bind(peer_session(*session));
  ActorExchange::of(*session).export_watched(Address::of(shared.fork), caf::actor_cast<caf::strong_actor_ptr>(actor));
  handed.manifest_.creation = Creation{id, shared.fork, number};
  return handle;
}

void RRefHost::creation_answered(ForkId fork, Result<void> answer) {
  ending_.creation_answered();
  caf::actor actor;
  {
    const LockGuard lock(mutex_);
    if (const auto user = users_.find(fork); user != users_.end()) actor = user->second.actor;
  }
  if (!actor) return;  // ended by hand
  caf::anon_send(actor, UserEvent{user_event::CreationAnswered{std::make_shared<Result<void>>(std::move(answer))}});
}

void RRefHost::set_value(RRefId id, Result<std::shared_ptr<rpc::HostedObject>> value) {
  tell_owner(id, OwnerEvent{owner_event::ValueSet{
                     std::make_shared<Result<std::shared_ptr<rpc::HostedObject>>>(std::move(value))}});
}

/// The lookup and the delivery are one step under the lock: an owner that ends leaves the table first, so every
/// event that was sent before is ahead of its end in the mailbox.
bool RRefHost::tell_owner(RRefId id, OwnerEvent event) {
  const LockGuard lock(mutex_);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return false;
  caf::anon_send(owner->second.actor, std::move(event));
  return true;
}

void RRefHost::link_value(RRefId id, const caf::actor& actor) {
  tell_owner(id, OwnerEvent{owner_event::ValueActor{actor}});
}

// ---- handing over

Result<OutgoingRRefs> RRefHost::hand_over(const rpc::RRefHandles& handles,
                                          const std::shared_ptr<transport::Session>& to) {
  OutgoingRRefs handed;
  for (const auto& handle : handles) {
    if (const auto shared = hand_over_one(handle, to, handed); !shared) {
      handed.undo();
      return shared.error();
    }
  }
  return handed;
}

Result<void> RRefHost::hand_over_one(const std::shared_ptr<rpc::RRefHandle>& base,
                                     const std::shared_ptr<transport::Session>& to, OutgoingRRefs& handed) {
  const rpc::PeerSession session = peer_session(*to);
  // Made before the frame leaves: the watch must be there when the fork's end arrives.
  const auto proxy_of = [&to](ForkId fork) { return ActorExchange::of(*to).proxy(Address::of(fork)); };
  const auto* handle = dynamic_cast<const HandleBase*>(base.get());
  if (!handle) return Error(Errc::bad_arguments, "an RRef without a value cannot be sent");
  if (handle->caller() != ports_.shared_from_this()) {
    return Error(Errc::bad_arguments, "RRef " + to_string(base->rref()) + " belongs to another worker of this process");
  }
  if (const auto failed = handle->failed()) return *failed;
  SharedRRef shared = handle->shared();
  shared.fork = make_fork_id();
  shared.parent = handle->fork();
  if (handle->is_owner()) {
    const bool alive =
        tell_owner(shared.rref, OwnerEvent{owner_event::HandedOver{shared.fork, session, proxy_of(shared.fork)}});
    if (!alive) return Error(Errc::rref_deleted, "the value of RRef " + to_string(shared.rref) + " is gone");
    handed.undo_.push_back([this, id = shared.rref, fork = shared.fork, session] {
      tell_owner(id, OwnerEvent{owner_event::NotHandedOver{fork, session}});
    });
  } else if (shared.owner == session.peer && shared.owner_incarnation == session.incarnation) {
    // To the owner itself nothing is registered: its reader takes a hold in order of arrival (RR-4).
    if (!rpc::may_pass_back(static_cast<const UserHandle*>(handle)->owner_session(), session)) {
      return Error(Errc::peer_down, base->owner().name(),
                   "RRef " + to_string(shared.rref) + " belongs to an earlier session with " + base->owner().name());
    }
  } else {
    const caf::actor actor = static_cast<const UserHandle*>(handle)->actor();
    // The child sends its acceptance to the parent, and gets a message when the parent ends.
    ActorExchange::of(*to).export_watched(Address::of(shared.parent), caf::actor_cast<caf::strong_actor_ptr>(actor));
    caf::anon_send(actor, UserEvent{user_event::ChildHandedOver{shared.fork, session, proxy_of(shared.fork)}});
    handed.undo_.push_back([actor, fork = shared.fork, session] {
      caf::anon_send(actor, UserEvent{user_event::ChildNotHandedOver{fork, session}});
    });
  }
  handed.manifest_.shared.push_back(std::move(shared));
  return {};
}

// ---- receiving

Result<std::shared_ptr<ReceivedRRefs>> RRefHost::on_manifest(transport::Session& session, wire::ByteView bytes) {
  auto manifest = wire::decode<Manifest>(bytes);
  if (!manifest) return manifest.error();
  auto received = std::make_shared<ReceivedRRefs>(*this, ports_.shared_from_this());
  if (manifest->creation) {
    const Creation& creation = *manifest->creation;
    received->creation = creation;
    if (Result<void> valid = check_creation(creation, session.peer(), ports_.id()); !valid) return valid.error();
    if (creation.fork) {
      {
        const LockGuard lock(mutex_);
        if (owners_.contains(creation.rref)) return Error(Errc::malformed_payload, "a creation that came twice");
      }
      make_owner(creation.rref, "?");
      tell_owner(creation.rref,
                 OwnerEvent{owner_event::CreatedBy{creation.fork, peer_session(session),
                                                   ActorExchange::of(session).proxy(Address::of(creation.fork))}});
      for (auto& parked : parked_.created(creation.rref, creation.number)) {
        tell_owner(creation.rref, OwnerEvent{owner_event::Requested{parked.request, std::move(parked.child)}});
      }
    }
  }
  for (const SharedRRef& shared : manifest->shared) {
    auto handle = receive(session, shared);
    if (!handle) return handle.error();
    received->handles.push_back(std::move(*handle));
  }
  return received;
}

Result<std::shared_ptr<rpc::RRefHandle>> RRefHost::receive(transport::Session& session, const SharedRRef& shared) {
  auto owner = ports_.find_peer(shared.owner);
  if (!owner) return Error(Errc::malformed_payload, "a reference to a value of an unknown worker");
  const rpc::PeerSession from = peer_session(session);

  if (shared.owner == ports_.id() && shared.owner_incarnation == ports_.incarnation()) {
    // A reference to a value of this worker came back.
    auto handle = std::make_shared<OwnerHandle>(*this, ports_.shared_from_this(), shared, *owner, false,
                                                value_error(shared.rref));
    const auto answer = [weak = std::weak_ptr(handle)](Result<void> held) {
      if (const auto strong = weak.lock()) strong->confirm(std::move(held));
    };
    // A fork that this worker made for itself was registered in the session that sent the frame.
    rpc::PeerSession registered = from;
    if (from.peer == ports_.id()) registered.connection = other_end_of_self(from.connection);
    if (!tell_owner(shared.rref, OwnerEvent{owner_event::PassedBack{shared.fork, registered, answer}})) {
      handle->confirm(Error(Errc::rref_deleted, "the value of RRef " + to_string(shared.rref) + " is gone"));
    }
    return std::shared_ptr<rpc::RRefHandle>(std::move(handle));
  }

  if (Result<void> valid = check_shared(shared, from); !valid) return valid.error();
  {
    const LockGuard lock(mutex_);
    if (users_.contains(shared.fork)) return Error(Errc::malformed_payload, "a reference that came twice");
  }
  caf::actor actor;
  std::shared_ptr<UserHandle> handle;
  if (!shared.parent) {
    handle = make_user(shared, *owner, rpc::UserFork::from_owner(shared.fork, from, owner->name()), nullptr, actor);
    handle->bind(from);
  } else {
    auto parent = ActorExchange::of(session).proxy(Address::of(shared.parent));
    handle = make_user(shared, *owner, rpc::UserFork::from_parent(shared.fork, {shared.parent, from}, owner->name()),
                       std::move(parent), actor);
  }
  ActorExchange::of(session).export_watched(Address::of(shared.fork), caf::actor_cast<caf::strong_actor_ptr>(actor));
  return std::shared_ptr<rpc::RRefHandle>(std::move(handle));
}

// ---- serving

void RRefHost::with_value(RRefId id, std::shared_ptr<ValueJob> job) {
  if (!tell_owner(id, OwnerEvent{owner_event::Job{job}})) {
    job->run(ports_.leaving().value_or(Error(Errc::rref_deleted, "the value of RRef " + to_string(id) + " is gone")),
             [] {});
  }
}

void RRefHost::on_session_start() {
  std::vector<caf::actor> users;
  {
    const LockGuard lock(mutex_);
    for (const auto& [fork, user] : users_) users.push_back(user.actor);
  }
  for (const auto& actor : users) {
    if (actor) caf::anon_send(actor, UserEvent{user_event::SessionOpened{}});
  }
}

void RRefHost::on_session_end(const transport::Session& session, bool) {
  const rpc::PeerSession ended = peer_session(session);
  const std::vector<ParkedForks::Parked> refused = parked_.session_ended(ended);
  std::vector<caf::actor> users;
  {
    const LockGuard lock(mutex_);
    for (const auto& [fork, user] : users_) users.push_back(user.actor);
    creations_.erase(ended.connection);
  }
  for (const auto& actor : users) {
    if (actor) caf::anon_send(actor, UserEvent{user_event::OwnerLost{ended}});
  }
  for (const auto& [request, child] : refused) answer_fork(request.fork, request.session, Errc::rref_deleted);
}

void RRefHost::end_all(const Error& reason, StopReport& given_up) {
  std::vector<caf::actor> users;
  std::vector<caf::actor> owners;
  {
    const LockGuard lock(mutex_);
    for (const auto& [fork, user] : users_) users.push_back(user.actor);
    for (const auto& [id, owner] : owners_) owners.push_back(owner.actor);
    owners_.clear();
  }
  for (const auto& actor : users) caf::anon_send(actor, UserEvent{user_event::Finish{reason}});
  for (const auto& actor : owners) caf::anon_send(actor, OwnerEvent{owner_event::Finish{reason}});
  notify_if_empty();
  given_up.references += users.size() + owners.size();
}

void RRefHost::when_empty(std::function<void()> done) {
  {
    const LockGuard lock(mutex_);
    empty_ = std::move(done);
  }
  notify_if_empty();
}

void RRefHost::notify_if_empty() {
  // Called under the lock, so that a waiter that gives up knows that no notification is under way.
  const LockGuard lock(mutex_);
  if (empty_ && owners_.empty() && users_.empty()) std::exchange(empty_, nullptr)();
}

std::vector<RRefInfo> RRefHost::list() const {
  const TimePoint now = ports_.executor().clock().now();
  const std::string self = ports_.name();
  std::vector<RRefInfo> infos;
  // Released after the lock, which the end of the last handle of a fork takes.
  std::vector<std::shared_ptr<UserHandle>> keep;
  const LockGuard lock(mutex_);
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
  if (parked_.park(request, child)) return true;
  // Another session may have brought the creation since the first look: then the ledger counts it and it is there now.
  if (tell_owner(message.rref, OwnerEvent{owner_event::Requested{request, child}})) return false;
  answer_fork(message.fork, asker, Errc::rref_deleted);
  return false;
}

void RRefHost::answer_fork(ForkId fork, const rpc::PeerSession& session, Errc code) {
  const auto proxy = fork_proxy(fork, session);
  caf::anon_send(caf::actor_cast<caf::actor>(proxy), ForkAnswered{fork, code});
}

std::optional<rpc::PeerSession> RRefHost::send_fork_request(const caf::strong_actor_ptr& child,
                                                            const ForkRequested& request, const WorkerLife& owner) {
  const auto session = ports_.session_with(owner);
  if (!session) return std::nullopt;
  bind(request.fork, peer_session(*session));
  ActorExchange::of(*session).export_watched(Address::of(request.fork), child);
  const auto root = ActorExchange::of(*session).proxy(Address::root());
  root->enqueue(child, caf::make_message_id(), caf::make_message(request), nullptr);
  return peer_session(*session);
}

void RRefHost::owner_ending(RRefId id) {
  caf::actor last;
  {
    const LockGuard lock(mutex_);
    const auto owner = owners_.find(id);
    if (owner == owners_.end()) return;
    last = std::move(owner->second.actor);
    owners_.erase(owner);
  }
  notify_if_empty();
}

void RRefHost::value_known(RRefId id, const Result<std::shared_ptr<rpc::HostedObject>>& value) {
  const LockGuard lock(mutex_);
  const auto owner = owners_.find(id);
  if (owner == owners_.end()) return;
  owner->second.state = value ? "ready" : "failed";
  if (value) return;
  if (!owner->second.error) owner->second.error = std::make_shared<ValueError>();
  owner->second.error->set(value.error());
}

void RRefHost::fork_counted(RRefId id, ForkInfo fork) {
  const LockGuard lock(mutex_);
  if (const auto owner = owners_.find(id); owner != owners_.end()) owner->second.forks[fork.fork] = fork;
}

void RRefHost::fork_ended(RRefId id, ForkId fork) {
  const LockGuard lock(mutex_);
  if (const auto owner = owners_.find(id); owner != owners_.end()) owner->second.forks.erase(fork);
}

void RRefHost::user_ending(ForkId id) {
  User last;
  {
    const LockGuard lock(mutex_);
    const auto user = users_.find(id);
    if (user == users_.end()) return;
    last = std::move(user->second);
    users_.erase(user);
  }
  ending_.actor_ended(*last.first_gone);
  notify_if_empty();
}

void RRefHost::user_confirmed(ForkId id, Result<void> outcome) {
  std::shared_ptr<UserHandle> handle;
  {
    const LockGuard lock(mutex_);
    if (const auto user = users_.find(id); user != users_.end()) handle = user->second.handle.lock();
  }
  if (handle) handle->confirm(std::move(outcome));
}

void RRefHost::bind(ForkId fork, const rpc::PeerSession& session) {
  std::shared_ptr<UserHandle> handle;
  {
    const LockGuard lock(mutex_);
    if (const auto user = users_.find(fork); user != users_.end()) handle = user->second.handle.lock();
  }
  if (handle) handle->bind(session);
}

caf::strong_actor_ptr RRefHost::fork_proxy(ForkId fork, const rpc::PeerSession& session) {
  if (const auto at = ports_.session_at(session)) return ActorExchange::of(*at).proxy(Address::of(fork));
  return remote::ActorExchange::dead_proxy(ports_.actor_host(),
                                           Error(Errc::peer_down, "the session of this fork is over"));
}

}  // namespace caftan::actors
