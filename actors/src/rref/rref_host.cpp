#include "rref/rref_host.hpp"

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

void RRefHost::register_with(Registry&, remote::MessageRegistry& messages) {
  messages.add<ForkRequested>("rref.fork");
  messages.add<ForkAnswered>("rref.answer");
  messages.add<ForkAccepted>("rref.accept");
}

RRefId RRefHost::make_rref_id() {
  const WorkerLife self = ports_.life();
  return {self.id, self.incarnation, next_id_.fetch_add(1, std::memory_order_relaxed)};
}

ForkId RRefHost::make_fork_id() {
  const WorkerLife self = ports_.life();
  return {self.id, self.incarnation, next_id_.fetch_add(1, std::memory_order_relaxed)};
}

// ---- making references

void RRefHost::make_owner(RRefId id, OwnerEvent first, std::string type) {
  table_.add_owner(id, ports_.actor_host().spawn(owner_rref_actor, this, id), std::move(first), std::move(type),
                   ports_.executor().clock().now());
}

std::shared_ptr<rpc::RRefHandle> RRefHost::own(RRefId id, rpc::TypeKey type) {
  make_owner(id, OwnerEvent{owner_event::CreatedHere{}}, std::string(type.name));
  rpc::SharedRRef shared{id, {}, ports_.life(), {}, {}, type.hash, std::string(type.name)};
  return std::make_shared<OwnerHandle>(*this, ports_.shared_from_this(), std::move(shared),
                                       *ports_.find_peer(ports_.id()), true, table_.value_error(id));
}

std::shared_ptr<UserHandle> RRefHost::make_user(const rpc::SharedRRef& shared, const Peer& owner, rpc::UserFork fork,
                                                caf::strong_actor_ptr parent) {
  auto handle = std::make_shared<UserHandle>(*this, ports_.shared_from_this(), shared, owner, fork.is_confirmed());
  RRefTable::User user{{}, handle, shared.rref, ports_.executor().clock().now(), shared.is_creators()};
  table_.add_user(shared.fork, std::move(user), [&] {
    // Spawning only posts the actor, so nothing of it runs under the lock of the table.
    handle->set_actor(ports_.actor_host().spawn(user_rref_actor, this, std::move(fork),
                                                ForkRequested{shared.rref, shared.creation, shared.fork, shared.parent},
                                                shared.owner, std::move(parent)));
    return handle->actor();
  });
  return handle;
}

std::shared_ptr<rpc::RRefHandle> RRefHost::use_created(RRefId id, const std::shared_ptr<transport::Session>& session,
                                                       const Peer& owner, rpc::TypeKey type, OutgoingRRefs& handed) {
  ending_.creation_begins();
  rpc::CreationNumber number{session->connection(), 0};
  {
    const base::LockGuard lock(mutex_);
    number.number = ++creations_[session->connection()];
  }
  rpc::SharedRRef shared{id, make_fork_id(), session->peer().life, {}, number, type.hash, std::string(type.name)};
  auto handle =
      make_user(shared, owner, rpc::UserFork::created(shared.fork, peer_session(*session), owner.name()), nullptr);
  handle->bind(peer_session(*session));
  ActorExchange::of(*session).export_watched(Address::of(shared.fork),
                                             caf::actor_cast<caf::strong_actor_ptr>(handle->actor()));
  handed.set_creation({id, shared.fork, number});
  return handle;
}

void RRefHost::creation_answered(ForkId fork, Result<void> reply) {
  ending_.creation_answered();
  const caf::actor actor = table_.user_actor(fork);
  if (!actor) return;  // ended by hand
  caf::anon_send(actor, UserEvent{user_event::CreationAnswered{std::make_shared<Result<void>>(std::move(reply))}});
}

void RRefHost::set_value(RRefId id, Result<std::shared_ptr<rpc::HostedObject>> value) {
  table_.send_to_owner(id, OwnerEvent{owner_event::ValueSet{
                               std::make_shared<Result<std::shared_ptr<rpc::HostedObject>>>(std::move(value))}});
}

void RRefHost::link_value(RRefId id, const caf::actor& actor) {
  table_.send_to_owner(id, OwnerEvent{owner_event::ValueActor{actor}});
}

void RRefHost::handle_let_go(ForkId fork) {
  // Counted before the table has the mark: `user_ending` subtracts what it finds marked, so the count is never too
  // small.
  ending_.let_go();
  if (!table_.let_go(fork)) ending_.ended();  // the actor has ended before
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
  // The proxy is made before the frame leaves, so that the fork's end, whenever it arrives, finds it (RR-2).
  const auto proxy_of = [&to](ForkId fork) { return ActorExchange::of(*to).proxy(Address::of(fork)); };
  const auto* handle = dynamic_cast<const HandleBase*>(base.get());
  if (!handle) return Error(Errc::bad_arguments, "an RRef without a value cannot be sent");
  if (handle->caller() != ports_.shared_from_this()) {
    return Error(Errc::bad_arguments, "RRef " + to_string(base->rref()) + " belongs to another worker of this process");
  }
  if (const auto failed = handle->failed()) return *failed;
  rpc::SharedRRef shared = handle->shared();
  shared.fork = make_fork_id();
  shared.parent = handle->fork();
  if (handle->is_owner()) {
    if (const auto allowed = check_reference(session.peer.id); !allowed) return allowed.error().at(ports_.name());
    const bool alive = table_.send_to_owner(
        shared.rref, OwnerEvent{owner_event::HandedOver{shared.fork, session, proxy_of(shared.fork)}});
    if (!alive) return Error(Errc::rref_deleted, "the value of RRef " + to_string(shared.rref) + " is gone");
    handed.undo_.push_back([this, id = shared.rref, fork = shared.fork, session] {
      table_.send_to_owner(id, OwnerEvent{owner_event::NotHandedOver{fork, session}});
    });
  } else if (shared.owner == session.peer) {
    // A reference that goes back to its value's owner is registered nowhere: the owner's reader takes a hold, in the
    // order in which frames arrive (RR-4).
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
  const auto manifest = rpc::CheckedManifest::read(bytes, peer_session(session), ports_.life(), *this);
  if (!manifest) return manifest.error();
  auto received = std::make_shared<ReceivedRRefs>(*this, ports_.shared_from_this());
  received->creation = manifest->creation();
  if (received->creation && received->creation->fork) take_creation(session, *received->creation);
  for (const auto& reference : manifest->references()) received->handles.push_back(receive(session, reference));
  return received;
}

void RRefHost::take_creation(transport::Session& session, const rpc::Creation& creation) {
  auto proxy = ActorExchange::of(session).proxy(Address::of(creation.fork));
  make_owner(creation.rref, OwnerEvent{owner_event::CreatedBy{creation.fork, peer_session(session), std::move(proxy)}},
             "?");
  for (auto& parked : parked_.created(creation.rref, creation.number)) {
    table_.send_to_owner(creation.rref, OwnerEvent{owner_event::Requested{parked.request, std::move(parked.child)}});
  }
}

std::shared_ptr<rpc::RRefHandle> RRefHost::receive(transport::Session& session,
                                                   const rpc::CheckedManifest::Reference& reference) {
  using From = rpc::CheckedManifest::From;
  const rpc::SharedRRef& shared = reference.shared;
  const Peer owner = *ports_.find_peer(shared.owner.id);  // never an error: the manifest was checked
  if (reference.from == From::user) return receive_own(session, shared, owner);

  const rpc::PeerSession from = peer_session(session);
  std::shared_ptr<UserHandle> handle;
  if (reference.from == From::owner) {
    handle = make_user(shared, owner, rpc::UserFork::from_owner(shared.fork, from, owner.name()), nullptr);
    handle->bind(from);
  } else {
    handle = make_user(shared, owner, rpc::UserFork::from_parent(shared.fork, {shared.parent, from}, owner.name()),
                       ActorExchange::of(session).proxy(Address::of(shared.parent)));
  }
  ActorExchange::of(session).export_watched(Address::of(shared.fork),
                                            caf::actor_cast<caf::strong_actor_ptr>(handle->actor()));
  return handle;
}

/// Takes a reference to a value of this worker, which came back.
std::shared_ptr<rpc::RRefHandle> RRefHost::receive_own(transport::Session& session, const rpc::SharedRRef& shared,
                                                       const Peer& owner) {
  auto handle = std::make_shared<OwnerHandle>(*this, ports_.shared_from_this(), shared, owner, false,
                                              table_.value_error(shared.rref));
  const auto reply = [weak = std::weak_ptr(handle)](Result<void> held) {
    if (const auto strong = weak.lock()) strong->confirm(std::move(held));
  };
  // The fork of a reference that this worker passed to itself was registered in the session at the other end of the
  // connection.
  rpc::PeerSession registered = peer_session(session);
  if (registered.peer.id == ports_.id()) registered.connection = other_end_of_self(registered.connection);
  if (!table_.send_to_owner(shared.rref,
                            OwnerEvent{owner_event::PassedBack{shared.fork, shared.parent, registered, reply}})) {
    handle->confirm(Error(Errc::rref_deleted, "the value of RRef " + to_string(shared.rref) + " is gone"));
  }
  return handle;
}

Result<void> RRefHost::check_reference(WorkerId peer) const {
  return permissions_ ? permissions_->check_reference(*ports_.find_peer(peer)) : Result<void>();
}

// ---- serving

void RRefHost::with_value(RRefId id, std::shared_ptr<ValueJob> job) {
  if (!table_.send_to_owner(id, OwnerEvent{owner_event::Job{job}})) {
    job->run(ports_.leaving().value_or(Error(Errc::rref_deleted, "the value of RRef " + to_string(id) + " is gone")),
             [] {});
  }
}

void RRefHost::on_session_start() {
  for (const auto& actor : table_.user_actors()) caf::anon_send(actor, UserEvent{user_event::SessionOpened{}});
}

void RRefHost::on_session_end(const transport::Session& session, bool) {
  const rpc::PeerSession ended = peer_session(session);
  const std::vector<ParkedForks::Parked> refused = parked_.session_ended(ended);
  {
    const base::LockGuard lock(mutex_);
    creations_.erase(ended.connection);
  }
  for (const auto& actor : table_.user_actors()) caf::anon_send(actor, UserEvent{user_event::OwnerLost{ended}});
  for (const auto& [request, child] : refused) answer_fork(request.fork, request.session, Errc::rref_deleted);
}

void RRefHost::end_all(const Error& reason, StopReport& given_up) {
  const RRefTable::Actors actors = table_.clear_owners();
  for (const auto& actor : actors.users) caf::anon_send(actor, UserEvent{user_event::Finish{reason}});
  for (const auto& actor : actors.owners) caf::anon_send(actor, OwnerEvent{owner_event::Finish{reason}});
  table_.notify_if_empty();
  given_up.references += actors.users.size() + actors.owners.size();
}

std::vector<RRefInfo> RRefHost::list() const { return table_.list(ports_.name(), ports_.executor().clock().now()); }

// ---- for the actors

bool RRefHost::on_fork_requested(const ForkRequested& message, const rpc::PeerSession& asker,
                                 const caf::strong_actor_ptr& child) {
  if (!check_reference(asker.peer.id)) {
    answer_fork(message.fork, asker, Errc::not_permitted);
    return false;
  }
  const rpc::ForkRequest request{message.rref, message.creation, message.fork, message.parent, asker};
  if (table_.send_to_owner(message.rref, OwnerEvent{owner_event::Requested{request, child}})) return false;
  if (parked_.park(request, child)) return true;
  // Another session may have brought the creation since the first look: then the ledger counts it and it is there now.
  if (table_.send_to_owner(message.rref, OwnerEvent{owner_event::Requested{request, child}})) return false;
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
  if (const auto handle = table_.handle_of(request.fork)) handle->bind(peer_session(*session));
  ActorExchange::of(*session).export_watched(Address::of(request.fork), child);
  const auto root = ActorExchange::of(*session).proxy(Address::root());
  root->enqueue(child, caf::make_message_id(), caf::make_message(request), nullptr);
  return peer_session(*session);
}

void RRefHost::user_ending(ForkId id) {
  const auto last = table_.remove_user(id);
  if (!last) return;
  if (last->is_let_go) ending_.ended();
  table_.notify_if_empty();
}

void RRefHost::user_confirmed(ForkId id, Result<void> outcome) {
  if (const auto handle = table_.handle_of(id)) handle->confirm(std::move(outcome));
}

caf::strong_actor_ptr RRefHost::fork_proxy(ForkId fork, const rpc::PeerSession& session) {
  if (const auto at = ports_.session_at(session)) return ActorExchange::of(*at).proxy(Address::of(fork));
  return remote::ActorExchange::dead_proxy(ports_.actor_host(),
                                           Error(Errc::peer_down, "the session of this fork is over"));
}

}  // namespace caftan::actors
