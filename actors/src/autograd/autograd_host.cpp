#include "autograd/autograd_host.hpp"

#include <set>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include "autograd/autograd_context_actor.hpp"
#include "autograd/closed_contexts_actor.hpp"
#include "autograd/recv_function_actor.hpp"
#include "autograd/send_function_actor.hpp"
#include "caftan/actors/worker.hpp"
#include "caftan/autograd/rref_backward.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

using autograd::ContextRecord;
using remote::Address;

namespace {

/// The outcome of a pass, whose future may be cancelled.
class PassState final : public rpc::FutureState<void> {
 public:
  PassState(std::weak_ptr<rpc::Caller> caller, AutogradHost& host, const ContextId& context)
      : FutureState(std::move(caller)), host_(host), context_(context) {}

  bool cancel() override {
    if (!FutureState::cancel()) return false;
    if (const auto alive = caller().lock()) host_.cancelled(context_, weak_from_this());
    return true;
  }

 private:
  AutogradHost& host_;  // valid while the caller is
  const ContextId context_;
};

}  // namespace

PassPromise::~PassPromise() { set(Error(Errc::context_released, worker_, "the autograd context has ended")); }

void PassPromise::set(Result<void> outcome) {
  const rpc::NoUserCode reading;
  state_->complete(std::move(outcome));
}

void AutogradHost::register_with(Registry& registry, remote::MessageRegistry& messages) {
  autograd::add_rref_backward(registry);
  messages.add<PassEnvelope>("autograd.pass");
  messages.add<GradientMessage>("autograd.gradient");
}

// ---- making and finding contexts

std::shared_ptr<ContextRecord> AutogradHost::make_entry_locked(const ContextId& id) {
  const base::TimePoint now = ports_.executor().clock().now();
  auto record = std::make_shared<ContextRecord>(*this, ports_.shared_from_this(), id, self_, next_place_++, now);
  Entry& entry = entries_[id];
  entry.record = record;
  entry.actor = ports_.actor_host().spawn(autograd_context_actor, this, record);
  places_[record->place()] = id;
  return record;
}

Result<std::shared_ptr<ContextRecord>> AutogradHost::create() {
  if (auto why = ports_.leaving()) return *std::move(why);
  const base::LockGuard lock(mutex_);
  return make_entry_locked(table_.create());
}

Result<std::shared_ptr<ContextRecord>> AutogradHost::enter(const ContextId& context, const Peer& from) {
  const base::LockGuard lock(mutex_);
  if (const auto found = entries_.find(context); found != entries_.end() && !found->second.over) {
    found->second.record->met(from.id());
    return found->second.record;
  }
  if (auto why = ports_.leaving()) return *std::move(why);
  const auto entered = table_.enter(context);
  if (!entered) return entered.error();
  auto record = make_entry_locked(context);
  record->met(from.id());
  return record;
}

/// The lookup and the delivery are one step under the lock: a context that ends leaves the table first.
bool AutogradHost::tell(const ContextId& context, ContextEvent event) {
  const base::LockGuard lock(mutex_);
  const auto entry = entries_.find(context);
  if (entry == entries_.end()) return false;
  caf::anon_send(entry->second.actor, std::move(event));
  return true;
}

void AutogradHost::release(const ContextId& context) noexcept { tell(context, ContextEvent{context_event::Release{}}); }

void AutogradHost::learned(const ContextId& context) { tell(context, ContextEvent{context_event::Learned{}}); }

Future<void> AutogradHost::start_pass(const std::shared_ptr<ContextRecord>& context, autograd::PassStart start) {
  const auto state = std::make_shared<PassState>(ports_.weak_from_this(), *this, context->id());
  const auto promise = std::make_shared<PassPromise>(state, ports_.name());
  // If the actor has ended or quits and drops the event, the dropped promise completes the wait.
  tell(context->id(),
       ContextEvent{context_event::Start{std::make_shared<autograd::PassStart>(std::move(start)), promise}});
  return Future<void>(state);
}

std::optional<WorkerLife> AutogradHost::life_of(const Peer& peer) const {
  const auto session = ports_.session_of(peer);
  if (!session) return std::nullopt;
  return session->peer().life;
}

void AutogradHost::cancelled(const ContextId& context, std::weak_ptr<rpc::FutureCore> pass) {
  tell(context, ContextEvent{context_event::Cancelled{std::move(pass)}});
}

std::string AutogradHost::name_of(WorkerId peer) const {
  const auto known = ports_.find_peer(peer);
  return known ? known->name() : autograd::name_of({peer, {}});
}

std::string AutogradHost::peer_name(WorkerId peer) {
  const auto known = ports_.find_peer(peer);
  return known ? known->name() : std::string();
}

// ---- actors by name

caf::strong_actor_ptr AutogradHost::find_named(const transport::Session& session, const Address& name) {
  if (name.kind == remote::AddressKind::send_function) return find_send_function(session, name.message_id());
  if (name.kind != remote::AddressKind::autograd_context) return nullptr;
  const base::LockGuard lock(mutex_);
  const auto entry = entries_.find(name.context_id());
  const bool open = entry != entries_.end() && !entry->second.over;
  return open ? caf::actor_cast<caf::strong_actor_ptr>(entry->second.actor) : nullptr;
}

caf::strong_actor_ptr AutogradHost::stand_in(const Address& name) {
  if (name.kind != remote::AddressKind::autograd_context) return nullptr;
  const base::LockGuard lock(mutex_);
  if (!closed_contexts_) closed_contexts_ = ports_.actor_host().spawn(closed_contexts_actor, this);
  return caf::actor_cast<caf::strong_actor_ptr>(closed_contexts_);
}

caf::strong_actor_ptr AutogradHost::find_send_function(const transport::Session& session,
                                                       const AutogradMessageId& message) {
  if (message.maker() != self_) return nullptr;
  // Destroyed after the lock was released: its graph may own the last handle of a context.
  std::shared_ptr<const autograd::SendFunction> function;
  const base::LockGuard lock(mutex_);
  const auto place = places_.find(autograd::place_of(message));
  if (place == places_.end()) return nullptr;
  Entry& entry = entries_.at(place->second);
  if (entry.over) return nullptr;
  // DA-16: a gradient is taken only from the peer that the message was recorded with.
  const auto receiver = entry.record->receiver_of(message);
  if (!receiver || *receiver != session.peer().life) return nullptr;
  function = entry.record->send_function(message);
  if (!function) return nullptr;  // the context has ended meanwhile
  caf::actor& actor = entry.functions.sends[message];
  if (!actor) actor = ports_.actor_host().spawn(send_function_actor, std::move(function), entry.record, entry.actor);
  return caf::actor_cast<caf::strong_actor_ptr>(actor);
}

caf::strong_actor_ptr AutogradHost::proxy(const WorkerLife& peer, const Address& name) {
  const auto session = ports_.session_with(peer);
  return session && !session->ended() ? remote::ActorExchange::of(*session).proxy(name) : nullptr;
}

void AutogradHost::gradient_not_sent(const autograd::PassId& pass, const Error& error) {
  tell(pass.context, ContextEvent{context_event::NotSent{pass.number, error}});
}

caf::actor AutogradHost::recv_function(const ContextId& context, AutogradMessageId message) {
  const base::LockGuard lock(mutex_);
  caf::actor& actor = entries_.at(context).functions.recvs[message];
  if (!actor) actor = ports_.actor_host().spawn(recv_function_actor, this, message);
  return actor;
}

void AutogradHost::drop_functions(const ContextId& context) {
  FunctionActors dropped;  // they end outside the lock
  const base::LockGuard lock(mutex_);
  if (const auto entry = entries_.find(context); entry != entries_.end()) std::swap(dropped, entry->second.functions);
}

// ---- ends

autograd::ReleasedRange AutogradHost::context_over(const ContextId& context) {
  const base::LockGuard lock(mutex_);
  table_.released(context);
  if (const auto entry = entries_.find(context); entry != entries_.end()) {
    entry->second.over = true;
    places_.erase(entry->second.record->place());
  }
  return context.maker() == self_ ? table_.released_around(context) : autograd::ReleasedRange{};
}

void AutogradHost::learn_released(const WorkerLife& from, const autograd::Release& release) {
  if (release.context.maker() != from) return;
  std::optional<ContextId> question;
  {
    const base::LockGuard lock(mutex_);
    question = table_.learn(from, release.released);
  }
  if (!question) return;
  const remote::Address name = remote::Address::of(*question);
  const caf::strong_actor_ptr there = proxy(from, name);
  if (!there) return;  // the session has ended: the ranges are joined by `peer_down`
  // The reply comes to the actor for contexts that are not open.
  there->enqueue(stand_in(name), caf::make_message_id(), caf::make_message(PassEnvelope{autograd::Join{*question}}),
                 nullptr);
}

void AutogradHost::context_ended(const ContextId& context) {
  Entry ended;
  const base::LockGuard lock(mutex_);
  const auto entry = entries_.find(context);
  if (entry == entries_.end()) return;
  places_.erase(entry->second.record->place());
  ended = std::move(entry->second);
  entries_.erase(entry);
  table_.released(context);
  notify_if_empty_locked();
}

void AutogradHost::job_begins(const ContextId& context) noexcept {
  const base::LockGuard lock(mutex_);
  ++jobs_;
  if (const auto entry = entries_.find(context); entry != entries_.end()) ++entry->second.jobs;
}

void AutogradHost::job_ends(const ContextId& context) noexcept {
  const base::LockGuard lock(mutex_);
  --jobs_;
  if (const auto entry = entries_.find(context); entry != entries_.end()) --entry->second.jobs;
  notify_if_empty_locked();
}

/// Under the lock, so that a waiter that gives up knows that no notification is under way.
void AutogradHost::notify_if_empty_locked() noexcept {
  if (empty_ && entries_.empty() && jobs_ == 0) std::exchange(empty_, nullptr)();
}

std::optional<autograd::Send> AutogradHost::refuse(const WorkerLife& from, const autograd::PassMessage& message) const {
  const base::LockGuard lock(mutex_);
  return table_.refuse(from, message);
}

void AutogradHost::on_session_end(const transport::Session& session, bool is_last) {
  if (!is_last) return;
  const WorkerLife peer = session.peer().life;
  const base::LockGuard lock(mutex_);
  (void)table_.peer_down(peer);
  // Every context is informed, whether its home is here or not: its actor knows whether the peer takes part in it.
  for (auto& [id, entry] : entries_) caf::anon_send(entry.actor, ContextEvent{context_event::PeerDown{peer}});
}

void AutogradHost::end_all(const Error& reason, StopReport& given_up) {
  const base::LockGuard lock(mutex_);
  for (auto& [id, entry] : entries_) {
    if (!entry.over) ++given_up.contexts;
    caf::anon_send(entry.actor, ContextEvent{context_event::Finish{reason}});
  }
  closed_contexts_ = nullptr;  // made again for a message that comes before the sessions have ended
}

void AutogradHost::when_empty(std::function<void()> done) {
  const base::LockGuard lock(mutex_);
  empty_ = std::move(done);
  notify_if_empty_locked();
}

std::vector<autograd::ContextInfo> AutogradHost::list() const {
  const base::TimePoint now = ports_.executor().clock().now();
  std::vector<autograd::ContextInfo> infos;
  const base::LockGuard lock(mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry.over) continue;
    std::set<WorkerId> workers;
    autograd::ContextInfo& info = infos.emplace_back(entry.record->info(workers));
    info.age = now - entry.record->born();
    info.running = entry.jobs;
    if (const auto creator = ports_.find_peer(id.worker)) info.creator = creator->name();
    for (const WorkerId worker : workers) {
      if (const auto peer = ports_.find_peer(worker)) info.workers.push_back(peer->name());
    }
  }
  return infos;
}

std::size_t AutogradHost::in_use() const {
  const base::LockGuard lock(mutex_);
  return entries_.size() + jobs_;
}

AutogradCounts AutogradHost::counts() const {
  const base::LockGuard lock(mutex_);
  AutogradCounts counts{.contexts = entries_.size(), .places = places_.size(), .jobs = jobs_};
  for (const auto& [id, entry] : entries_) {
    counts.functions += entry.functions.sends.size() + entry.functions.recvs.size();
  }
  counts.open = table_.open_contexts();
  counts.remembered = table_.remembered();
  return counts;
}

}  // namespace caftan::actors
