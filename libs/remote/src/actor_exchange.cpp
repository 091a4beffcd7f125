#include "caftan/remote/internal/actor_exchange.hpp"

#include <optional>
#include <typeinfo>

#include <caf/make_actor.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>

#include "caftan/wire/archive.hpp"
#include "control_frame.hpp"
#include "proxy.hpp"

namespace caftan::remote {

namespace {

constexpr std::size_t kProxiesPerSlice = 64;
/// Returns the actor as a proxy, null if it is none. Quicker than dynamic_cast, which walks all of CAF's base classes
/// before it fails.
const Proxy* as_proxy(const caf::abstract_actor& actor) {
  return typeid(actor) == typeid(Proxy) ? static_cast<const Proxy*>(&actor) : nullptr;
}

constexpr std::size_t kMaxLinks = 1 << 20;  // links of one peer: bounds the memory that a peer can make this side hold

Error not_exported() { return Error(Errc::rref_deleted, "the actor is gone or was never exported to this peer"); }

/// Reports to the exchange that an exported actor has ended.
class ExportWatch final : public caf::attachable {
 public:
  ExportWatch(std::weak_ptr<transport::Session> session,
              std::function<void(transport::Session&, const caf::error&)> ended)
      : session_(std::move(session)), ended_(std::move(ended)) {}
  void actor_exited(const caf::error& reason, caf::execution_unit*) override {
    if (const auto session = session_.lock()) ended_(*session, reason);
  }

 private:
  const std::weak_ptr<transport::Session> session_;
  const std::function<void(transport::Session&, const caf::error&)> ended_;
};

}  // namespace

std::shared_ptr<transport::Session> ActorExchange::session_of(const caf::strong_actor_ptr& actor) {
  const Proxy* const proxy = actor ? as_proxy(*actor->get()) : nullptr;
  return proxy ? proxy->session() : nullptr;
}

caf::strong_actor_ptr ActorExchange::dead_proxy(ActorHost& host, const Error& reason) {
  caf::actor_system& system = host.system();
  caf::actor_config config{&host.unit()};
  auto dead = caf::make_actor<Proxy, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config,
                                                            std::weak_ptr<transport::Session>(), Address(), true);
  static_cast<Proxy*>(dead->get())->kill_proxy(nullptr, to_caf(reason));
  return dead;
}

Result<void> ActorExchange::send(const caf::strong_actor_ptr& to, const caf::strong_actor_ptr& from,
                                 const caf::message& message, std::optional<transport::FlushBy> may_wait) {
  if (!to || !as_proxy(*to->get())) return Error(Errc::bad_arguments, "a message to an actor that is no proxy");
  return static_cast<Proxy*>(to->get())->send(from, message.content(), may_wait);
}

caf::strong_actor_ptr ActorExchange::proxy(const Address& address) {
  const bool watched = address.kind == AddressKind::user_rref;
  caf::strong_actor_ptr made;
  std::optional<Error> ended;  // why the session has ended
  {
    const base::LockGuard lock(mutex_);
    caf::weak_actor_ptr& slot = proxies_[address];
    if (auto known = caf::actor_cast<caf::strong_actor_ptr>(slot)) return known;
    caf::actor_system& system = host_.system();
    caf::actor_config config{&host_.unit()};
    made = caf::make_actor<Proxy, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config,
                                                         session_.weak_from_this(), address, watched);
    if (ended_) {
      proxies_.erase(address);
      ended = reason_;
    } else {
      slot = caf::actor_cast<caf::weak_actor_ptr>(made);
    }
  }
  if (ended) static_cast<Proxy*>(made->get())->kill_proxy(nullptr, to_caf(*ended));
  return made;
}

void ActorExchange::forget(const Address& address) {
  caf::strong_actor_ptr successor;  // released after the lock: the end of this proxy calls `forget` again
  const base::LockGuard lock(mutex_);
  const auto found = proxies_.find(address);
  if (found == proxies_.end()) return;
  // A new proxy for the same address may be in the table by now; that one is alive and stays.
  successor = caf::actor_cast<caf::strong_actor_ptr>(found->second);
  if (!successor) proxies_.erase(found);
}

void ActorExchange::add_export(const Address& address, const caf::strong_actor_ptr& actor) {
  if (ended_) return;
  exports_[address] = caf::actor_cast<caf::weak_actor_ptr>(actor);
  export_ids_[actor->id()] = address;
}

void ActorExchange::export_at(const Address& address, const caf::strong_actor_ptr& actor) {
  const base::LockGuard lock(mutex_);
  add_export(address, actor);
}

void ActorExchange::export_watched(const Address& address, const caf::strong_actor_ptr& actor) {
  {
    const base::LockGuard lock(mutex_);
    if (!is_name(address.kind)) add_export(address, actor);
    // One watch is enough, however often the peer monitors the actor, stops and monitors it again.
    if (ended_ || !watched_exports_.insert_or_assign(address, true).second) return;
  }
  actor->get()->attach(caf::attachable_ptr(new ExportWatch(
      session_.weak_from_this(), [address, id = actor->id()](transport::Session& session, const caf::error& reason) {
        of(session).on_export_exit(address, id, reason);
      })));
}

Address ActorExchange::export_actor(const caf::strong_actor_ptr& actor) {
  if (!actor) return {};
  if (const Proxy* const proxy = as_proxy(*actor->get())) {
    caf::strong_actor_ptr current;  // released after the lock, because the end of a proxy takes the lock
    const base::LockGuard lock(mutex_);
    const auto found = proxies_.find(proxy->address_at_peer());
    if (found != proxies_.end()) current = caf::actor_cast<caf::strong_actor_ptr>(found->second);
    if (current == actor) {
      Address address = proxy->address_at_peer();
      if (address.kind == AddressKind::exported) address.kind = AddressKind::returned;
      return address;
    }
  }
  if (const auto* named = dynamic_cast<const NamedActor*>(actor->get())) return named->wire_name();
  const base::LockGuard lock(mutex_);
  const auto known = export_ids_.find(actor->id());
  if (known != export_ids_.end()) return known->second;
  const Address address = Address::exported(next_export_++);
  add_export(address, actor);
  return address;
}

caf::strong_actor_ptr ActorExchange::find_export(const Address& address) {
  if (is_name(address.kind)) {
    NamedActors* const named = host_.named_actors();
    return named ? named->find_named(session_, address) : nullptr;
  }
  const base::LockGuard lock(mutex_);
  const auto found = exports_.find(address);
  if (found == exports_.end()) return nullptr;
  return caf::actor_cast<caf::strong_actor_ptr>(found->second);
}

caf::strong_actor_ptr ActorExchange::resolve(const Address& address) {
  if (address.kind == AddressKind::returned) {
    auto ours = find_export(Address::exported(address.number));
    return ours ? ours : dead_proxy(host_, Error(Errc::rref_deleted, "the actor is gone"));
  }
  return proxy(address);
}

void ActorExchange::on_export_exit(const Address& address, caf::actor_id id, const caf::error& reason) {
  std::vector<caf::strong_actor_ptr> released;
  {
    const base::LockGuard lock(mutex_);
    exports_.erase(address);
    export_ids_.erase(id);
    const auto watch = watched_exports_.extract(address);
    released = release_links_locked(address);
    if (ended_ || !watch || !(watch.mapped() || !released.empty())) return;
  }
  const Error fitting = session_.writer().fitting(from_caf(reason, host_.system()), DownBody::kBesideReason);
  send_control(session_, wire::FrameKind::down, DownBody{address, fitting});
}

void ActorExchange::link_silently(caf::abstract_actor& local, const caf::strong_actor_ptr& proxy) {
  Proxy::quiet_links() = true;
  local.add_link(proxy->get());
  Proxy::quiet_links() = false;
}

void ActorExchange::unlink_silently(caf::abstract_actor& local, const caf::strong_actor_ptr& proxy) {
  Proxy::quiet_links() = true;
  local.remove_link(proxy->get());
  Proxy::quiet_links() = false;
}

template <class Body>
Result<void> ActorExchange::handle(const wire::InFrame& frame, Result<void> (ActorExchange::*handler)(const Body&)) {
  const auto body = wire::decode<Body>(frame.body);
  return body ? (this->*handler)(*body) : Result<void>(body.error());
}

Result<void> ActorExchange::on_frame(wire::InFrame frame) {
  switch (frame.header.kind) {
    case wire::FrameKind::actor_message:
      return on_message(frame);
    case wire::FrameKind::down:
      return handle(frame, &ActorExchange::on_down);
    case wire::FrameKind::exit:
      return handle(frame, &ActorExchange::on_exit);
    case wire::FrameKind::monitor:
      return handle(frame, &ActorExchange::on_monitor);
    case wire::FrameKind::demonitor:
      return handle(frame, &ActorExchange::on_demonitor);
    case wire::FrameKind::link:
      return handle(frame, &ActorExchange::on_link);
    case wire::FrameKind::unlink:
      return handle(frame, &ActorExchange::on_unlink);
    default:
      return Error(Errc::malformed_payload, "a frame kind out of place");
  }
}

Result<void> ActorExchange::on_message(wire::InFrame& frame) {
  if (frame.body.size() < RouteBody::kSize) return Error(Errc::malformed_payload, "an actor message is cut off");
  const auto route = wire::decode<RouteBody>(frame.body.first(RouteBody::kSize));
  if (!route) return route.error();
  const auto& [to, from] = *route;
  const std::uint64_t call = frame.header.call;
  auto target = find_export(to);
  if (!target && is_name(to.kind) && host_.named_actors()) target = host_.named_actors()->stand_in(to);
  InAttachment beside{frame.table, std::move(frame.segments), std::move(frame.received)};
  auto message = target ? host_.messages().decode(frame.body.subspan(RouteBody::kSize), beside, *this)
                        : Result<caf::message>(not_exported());
  caf::strong_actor_ptr sender;
  caf::message_id id;
  if (call != 0) {
    caf::actor_config config{&host_.unit()};
    caf::actor_system& system = host_.system();
    sender = caf::make_actor<ReplyActor, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config,
                                                                session_.weak_from_this(), call);
    id = caf::make_message_id(1);
    if (!message) {
      sender->enqueue(
          caf::make_mailbox_element(nullptr, id.response_id(), {}, caf::make_message(to_caf(message.error()))),
          nullptr);
      return {};
    }
  } else {
    if (!message) return target ? Result<void>(message.error()) : Result<void>();
    if (from.kind != AddressKind::none) sender = resolve(from);
  }
  target->enqueue(caf::make_mailbox_element(std::move(sender), id, {}, std::move(*message)), nullptr);
  return {};
}

/// The peer's actor at `address` has ended: its proxy goes down. A proxy without holders is not in the table.
void ActorExchange::take_down(const Address& address, const Error& reason) {
  caf::strong_actor_ptr proxy;
  {
    const base::LockGuard lock(mutex_);
    const auto found = proxies_.find(address);
    if (found == proxies_.end()) return;
    proxy = caf::actor_cast<caf::strong_actor_ptr>(found->second);
    proxies_.erase(found);
  }
  if (proxy) static_cast<Proxy*>(proxy->get())->kill_proxy(nullptr, to_caf(reason));
}

Result<void> ActorExchange::on_down(const DownBody& body) {
  take_down(body.actor, body.reason);
  return {};
}

Result<void> ActorExchange::on_exit(const ExitBody& body) {
  // The proxy of the peer's own actor goes down, and CAF sends an exit to each actor that is linked to the proxy. The
  // receiver that the frame names is ignored, so a forged exit ends no actor that has not linked itself to the peer's.
  take_down(body.from, body.reason);
  return {};
}

Result<void> ActorExchange::on_monitor(const MonitorBody& body) {
  const auto actor = find_export(body.actor);
  if (!actor) {
    send_control(session_, wire::FrameKind::down, DownBody{body.actor, not_exported()});
    return {};
  }
  export_watched(body.actor, actor);
  return {};
}

Result<void> ActorExchange::on_demonitor(const MonitorBody& body) {
  const base::LockGuard lock(mutex_);
  if (const auto watch = watched_exports_.find(body.actor); watch != watched_exports_.end()) watch->second = false;
  return {};
}

Result<void> ActorExchange::on_unlink(const RouteBody& body) {
  const auto& [to, from] = body;
  if (const auto target = find_export(to)) unlink_silently(*target->get(), proxy(from));
  decltype(links_)::node_type released;  // released after the lock, because the end of a proxy takes the lock
  const base::LockGuard lock(mutex_);
  released = links_.extract({to, from});
  return {};
}

Result<void> ActorExchange::on_link(const RouteBody& body) {
  const auto& [to, from] = body;
  const auto target = find_export(to);
  if (!target) {
    send_control(session_, wire::FrameKind::exit, ExitBody{from, to, not_exported()});
    return {};
  }
  const auto other = proxy(from);
  {
    caf::strong_actor_ptr replaced;  // released after the lock, because the end of a proxy takes the lock
    const base::LockGuard lock(mutex_);
    if (links_.size() >= kMaxLinks) return Error(Errc::limit_exceeded, "too many links of one peer");
    // CAF's links hold their ends weakly: without this the proxy would be destroyed before it could send its exit.
    replaced = std::exchange(links_[{to, from}], other);
  }
  export_watched(to, target);
  link_silently(*target->get(), other);
  return {};
}

/// Removes the links of the actor at `to`. Returns the handles that kept their proxies, for release outside the lock.
std::vector<caf::strong_actor_ptr> ActorExchange::release_links_locked(const Address& to) {
  std::vector<caf::strong_actor_ptr> released;
  for (auto link = links_.lower_bound({to, Address()}); link != links_.end() && link->first.first == to;) {
    released.push_back(std::move(link->second));
    link = links_.erase(link);
  }
  return released;
}

void ActorExchange::end(const Error& reason, std::function<void()> done) {
  auto left = std::make_shared<std::vector<caf::weak_actor_ptr>>();
  const auto linked = std::make_shared<decltype(links_)>();
  {
    const base::LockGuard lock(mutex_);
    ended_ = true;
    reason_ = reason;
    left->reserve(proxies_.size());
    for (auto& [address, proxy] : proxies_) left->push_back(std::move(proxy));
    proxies_.clear();
    exports_.clear();
    export_ids_.clear();
    watched_exports_.clear();
    linked->swap(links_);
  }
  struct Slice {
    std::shared_ptr<transport::Session> session;
    std::shared_ptr<std::vector<caf::weak_actor_ptr>> left;
    std::shared_ptr<void> linked;  // keeps the proxies of linked actors until they are down
    std::function<void()> done;
    Error reason;
    void operator()() {
      for (std::size_t i = 0; i < kProxiesPerSlice && !left->empty(); ++i) {
        const auto proxy = caf::actor_cast<caf::strong_actor_ptr>(left->back());
        left->pop_back();
        if (proxy) static_cast<Proxy*>(proxy->get())->kill_proxy(nullptr, to_caf(reason));
      }
      if (left->empty()) return done();
      base::Executor& executor = of(*session).host().executor();
      executor.post(std::move(*this));
    }
  };
  host_.executor().post(Slice{session_.shared_from_this(), std::move(left), linked, std::move(done), reason});
}

std::size_t ActorExchange::proxies() const {
  const base::LockGuard lock(mutex_);
  return proxies_.size();
}

std::size_t ActorExchange::exports() const {
  const base::LockGuard lock(mutex_);
  return exports_.size();
}

}  // namespace caftan::remote

namespace caftan::wire {

namespace {
template <class Archive>
remote::ActorExchange& exchange_of(const Archive& archive) {
  auto* exchange = archive.template companion<remote::ActorExchange>();
  if (!exchange)
    throw EncodeError(Error(Errc::unsupported, "an actor handle travels only inside a registered message"));
  return *exchange;
}
}  // namespace

void Codec<caf::actor>::save(OutArchive& to, const caf::actor& actor) {
  to << exchange_of(to).export_actor(caf::actor_cast<caf::strong_actor_ptr>(actor));
}

void Codec<caf::actor>::load(InArchive& from, caf::actor& actor) {
  remote::Address address;
  from >> address;
  if (address.kind == remote::AddressKind::none) throw DecodeError("an actor handle that names nothing");
  actor = caf::actor_cast<caf::actor>(exchange_of(from).resolve(address));
}

}  // namespace caftan::wire
