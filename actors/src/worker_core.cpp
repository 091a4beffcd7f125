// Starting, meeting the others, and leaving.

#include "worker_core.hpp"

#include <random>

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>


CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::View)

namespace caftan {

/// Who is here, by name.
struct LocalNetwork::State {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<actors::WorkerCore>> members;
  std::uint64_t next_connection = 1;
  Connect connect;  // constant
};

LocalNetwork::LocalNetwork()
    : LocalNetwork([](transport::PollingExecutor& executor, const std::string&, const std::string&) {
        return transport::make_loopback_pair(executor);
      }) {}
LocalNetwork::LocalNetwork(Connect connect) : state_(std::make_unique<State>()) {
  state_->connect = std::move(connect);
}
LocalNetwork::~LocalNetwork() = default;

}  // namespace caftan

namespace caftan::actors {

using transport::Session;

namespace {

constexpr Duration kDialAgain = std::chrono::milliseconds(20);

Incarnation random_incarnation() {
  std::random_device device;
  std::uint64_t value = 0;
  while (value == 0) value = (std::uint64_t{device()} << 32) ^ device();
  return Incarnation{value};
}

}  // namespace

/// The root that peers talk to before they know any other actor of this worker.
class WorkerCore::RootActor final : public caf::event_based_actor {
 public:
  RootActor(caf::actor_config& config, WorkerCore& core) : caf::event_based_actor(config), core_(core) {
    set_exit_handler([this](const caf::exit_msg& exit) {
      if (exit.reason == caf::exit_reason::user_shutdown) quit(exit.reason);
    });
  }
  const char* name() const override { return "worker_actor"; }
  caf::behavior make_behavior() override {
    return {
        [this](const ForkRequested& request) {
          const auto session = transport::ActorExchange::session_of(current_sender());
          // A fork request is about the actor that sends it: nobody registers forks for others.
          if (session) core_.rrefs_.on_fork_requested(request, peer_session(*session), current_sender());
        },
        [this](const net::View& view) {
          const auto session = transport::ActorExchange::session_of(current_sender());
          if (session && session->peer().id == WorkerId{0}) core_.apply_view(view);
        },
    };
  }

 private:
  WorkerCore& core_;
};

Result<std::shared_ptr<WorkerCore>> WorkerCore::make(WorkerOptions options, Registry registry) {
  if (auto frozen = registry.freeze(); !frozen) return frozen.error();
  std::vector<net::WorldEntry> world;
  std::optional<WorkerId> self;
  for (const WorkerAddress& member : options.world) {
    const WorkerId id{static_cast<std::uint32_t>(world.size())};
    if (member.name == options.name) self = id;
    world.push_back({member.name, id, member.address});
  }
  if (!self) return Error(Errc::invalid_config, "worker '" + options.name + "' is not a member of its own world");
  if (options.peer_timeout < 2 * options.heartbeat || options.heartbeat <= Duration::zero()) {
    return Error(Errc::invalid_config, "peer_timeout must be at least two heartbeats");
  }
  const std::string& address = world[self->value].address;
  if (options.secret.empty() && transport::is_beyond_loopback(address)) {
    return Error(Errc::invalid_config, "worker '" + options.name + "' would listen beyond this host at " + address +
                                           " without a shared secret: set one");
  }
  const Incarnation incarnation = random_incarnation();
  auto membership = net::Membership::make(world, net::Join{options.name, *self, incarnation, address});
  if (!membership) return membership.error();
  std::shared_ptr<WorkerCore> core(
      new WorkerCore(std::move(options), std::move(registry), *self, std::move(*membership)));
  return core;
}

WorkerCore::WorkerCore(WorkerOptions options, Registry registry, WorkerId self, net::Membership membership)
    : options_(std::move(options)),
      registry_(std::move(registry)),
      self_(self),
      incarnation_(membership.self().incarnation),
      rrefs_(*this),
      dispatcher_(*this),
      membership_(std::move(membership)) {
  messages_.add<ForkRequested>("rref.fork");
  messages_.add<ForkAnswered>("rref.answer");
  messages_.add<ForkAccepted>("rref.accept");
  messages_.add<net::View>("membership.view");
  actor_host_ = std::make_unique<transport::ActorHost>(*options_.executor, messages_, self_, incarnation_);
  for (const WorkerAddress& member : options_.world) {
    const WorkerId id{static_cast<std::uint32_t>(peers_.size())};
    peers_.push_back(std::make_shared<PeerState>(id, member.name, member.address));
    ids_[member.name] = id;
  }
  dialling_.resize(peers_.size());
}

void WorkerCore::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

transport::SessionLimits WorkerCore::session_limits() const {
  transport::SessionLimits limits;
  limits.message = options_.limits.message;
  limits.tensors = options_.limits.tensors;
  limits.requests = options_.limits.pending_calls;
  limits.window = options_.limits.window;
  limits.receive = options_.limits.receive;
  limits.liveness = {options_.heartbeat, options_.peer_timeout};
  return limits;
}

// ---- joining

Result<void> WorkerCore::launch() {
  root_ = actor_host_->spawn<RootActor>(*this);
  // Calls to this worker itself go through a channel like all others.
  auto [here, there] = transport::make_loopback_pair(*options_.executor);
  add_session(identity(), kSelfServing, std::move(there), {}, false);
  add_session(identity(), other_end_of_self(kSelfServing), std::move(here), {}, true);

  if (options_.network) {
    auto& state = *options_.network->state_;
    std::vector<std::pair<std::shared_ptr<WorkerCore>, std::uint64_t>> others;
    {
      const std::lock_guard lock(state.mutex);
      if (auto& slot = state.members[options_.name]; !slot.expired()) {
        return Error(Errc::invalid_config, "a worker '" + options_.name + "' is in this network already");
      } else {
        slot = shared_core();
      }
      for (const auto& [name, weak] : state.members) {
        const auto other = weak.lock();
        // Session numbers of a pair start where no number of the self-session is.
        if (other && other.get() != this && ids_.contains(name)) {
          others.emplace_back(other, 1000 + state.next_connection++);
        }
      }
    }
    for (const auto& [other, connection] : others) {
      auto [mine, theirs] = state.connect(*options_.executor, options_.name, other->name());
      add_local_session(other->identity(), connection, std::move(mine));
      other->add_local_session(identity(), connection, std::move(theirs));
    }
  }
  const std::string& address = options_.world[self_.value].address;
  if (!options_.network || !address.empty()) {
    if (const auto listening = listen_at(address); !listening) return listening;
  }
  if (!options_.network) {
    for (std::uint32_t id = 0; id < self_.value; ++id) dial_peer(WorkerId{id});
  }
  check_ready();
  return {};
}

Result<void> WorkerCore::listen_at(const std::string& address) {
  // A member that everybody dials needs an address in the world; the last one dials all others and needs none.
  if (address.empty() && self_.value + 1 == peers_.size()) return {};
  const std::string at = address.empty() ? "tcp:127.0.0.1:0" : address;
  const std::weak_ptr weak(shared_core());
  auto listener = transport::listen(
      *options_.executor, at,
      [weak]() -> Result<net::HandshakeOptions> {
        if (const auto self = weak.lock()) return self->handshake_options(0);
        return Error(Errc::shut_down, "this worker has left");
      },
      {},
      [weak](Result<transport::Greeted> result) {
        if (const auto self = weak.lock()) self->greeted(std::move(result), false, {});
      });
  if (!listener) return listener.error().at(name());
  listener_ = std::move(*listener);
  {
    const std::lock_guard lock(mutex_);
    own_address_ = listener_->address();
  }
  listener_->start();
  return {};
}

net::HandshakeOptions WorkerCore::handshake_options(std::uint64_t connection) {
  net::HandshakeOptions handshake;
  handshake.self.cluster = options_.cluster;
  handshake.self.name = options_.name;
  handshake.self.id = self_;
  handshake.self.incarnation = incarnation_;
  handshake.self.limits = {options_.limits.message, options_.limits.receive, options_.limits.window};
  handshake.self.connection = connection;
  {
    const std::lock_guard lock(mutex_);
    handshake.self.address = own_address_;
  }
  handshake.secret = net::Secret(options_.secret);
  handshake.allow_no_secret = options_.secret.empty();
  handshake.accept = [weak = std::weak_ptr(shared_core())](const net::PeerInfo& peer) -> Result<void> {
    const auto self = weak.lock();
    if (!self) return Error(Errc::shut_down, "this worker has left");
    const std::lock_guard lock(self->mutex_);
    return self->membership_.admit({peer.name, peer.id, peer.incarnation, peer.address});
  };
  return handshake;
}

/// Dials until the peer answers or the start is over. A peer without a known address is learnt from the head's view.
void WorkerCore::dial_peer(WorkerId peer) {
  std::string address;
  std::uint64_t connection = 0;
  {
    const std::lock_guard lock(mutex_);
    if (dialling_[peer.value] || membership_.is_up(peer) || start_error_) return;
    address = peers_[peer.value]->address;
    if (address.empty()) return;
    dialling_[peer.value] = true;
    connection = next_connection_++;
  }
  transport::dial(*options_.executor, address, handshake_options(connection), peers_[peer.value]->name(), {},
                  [weak = std::weak_ptr(shared_core()), peer](Result<transport::Greeted> result) {
                    const auto self = weak.lock();
                    if (!self) return;
                    {
                      const std::lock_guard lock(self->mutex_);
                      self->dialling_[peer.value] = false;
                    }
                    self->greeted(std::move(result), true, self->peers_[peer.value]->name());
                  });
}

void WorkerCore::greeted(Result<transport::Greeted> result, bool dialled, const std::string& whom) {
  if (!result) {
    const Error& error = result.error();
    if (!dialled) {
      log("a connection was refused: " + error.message());
      return;
    }
    const bool not_there_yet = error.code() == Errc::peer_down || error.code() == Errc::timeout;
    if (!not_there_yet) return fail_start(Error(error.code(), whom, error.text()));
    {
      const std::lock_guard lock(mutex_);
      last_dial_error_ = error;
      if (start_error_ || life_ != Life::starting) return;
    }
    options_.executor->post_at(options_.executor->clock().now() + kDialAgain,
                               [weak = std::weak_ptr(shared_core()), id = ids_.at(whom)] {
                                 if (const auto self = weak.lock()) self->dial_peer(id);
                               });
    return;
  }
  const net::PeerInfo& peer = result->peer;
  if (add_session({peer.id, peer.name, peer.incarnation}, peer.connection, std::move(result->channel), result->early,
                  true)) {
    on_member_up(peer.id, peer.address);
  }
}

void WorkerCore::add_local_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                                   std::shared_ptr<transport::Channel> channel) {
  if (add_session(peer, connection, std::move(channel), {}, true)) on_member_up(peer.id, {});
}

/// @param primary  the end that calls of this worker use
std::shared_ptr<Session> WorkerCore::add_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                                                 std::shared_ptr<transport::Channel> channel, wire::ByteView early,
                                                 bool primary) {
  if (peer.id != self_) {
    const std::lock_guard lock(mutex_);
    const auto up = is_leaving() ? Result<bool>(Error(Errc::shut_down, "this worker is leaving"))
                                 : membership_.on_up(peer.id, peer.incarnation);
    if (!up) {
      log(peer.name + " was refused: " + up.error().message());
      channel->close();
      return nullptr;
    }
  }
  const char* kind = channel->kind();
  auto session = Session::make({*options_.executor, *actor_host_, pool_, *this}, peer, connection, std::move(channel),
                               session_limits());
  session->actors().export_at(transport::Address::root(), caf::actor_cast<caf::strong_actor_ptr>(root_));
  {
    const std::lock_guard lock(mutex_);
    if (is_leaving()) return nullptr;  // stop() has looked at sessions_ already, or will not see this one
    sessions_[{peer.id, peer.incarnation, connection}] = session;
  }
  if (primary) peers_[peer.id.value]->set_session(session);
  session->start(early);
  if (peer.id != self_) log("connected with " + peer.name + " over " + kind);
  return session;
}

void WorkerCore::on_member_up(WorkerId peer, const std::string& address) {
  {
    const std::lock_guard lock(mutex_);
    if (peers_[peer.value]->address.empty()) peers_[peer.value]->address = address;
    if (self_ == WorkerId{0}) {
      const Session* session = peers_[peer.value]->session().get();
      if (session) {
        (void)membership_.join({peers_[peer.value]->name(), peer, session->peer().incarnation,
                                peers_[peer.value]->address});
      }
    }
  }
  if (self_ == WorkerId{0}) publish_view();
  check_ready();
}

/// Head: once all have come, everybody learns where everybody is.
void WorkerCore::publish_view() {
  net::View view;
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& peer : peers_) {
      if (peer->id() != self_ && !membership_.is_up(peer->id())) return;
    }
    if (!membership_.complete() || std::exchange(view_published_, true)) return;
    view = membership_.view();
    for (const auto& peer : peers_) {
      if (peer->id() != self_) sessions.push_back(peer->session());
    }
  }
  for (const auto& session : sessions) {
    if (!session) continue;
    session->actors().proxy(transport::Address::root())
        ->enqueue(caf::actor_cast<caf::strong_actor_ptr>(root_), caf::make_message_id(), caf::make_message(view),
                  nullptr);
  }
}

void WorkerCore::apply_view(const net::View& view) {
  std::vector<WorkerId> to_dial;
  {
    const std::lock_guard lock(mutex_);
    if (const auto applied = membership_.apply(view); !applied) {
      log("the head's view was refused: " + applied.error().message());
      return;
    }
    for (const net::Join& member : view.members) {
      std::string& address = peers_[member.id.value]->address;
      if (address.empty()) address = member.address;
      if (member.id.value < self_.value && !membership_.is_up(member.id)) to_dial.push_back(member.id);
    }
  }
  for (const WorkerId id : to_dial) dial_peer(id);
}

void WorkerCore::check_ready() {
  const std::lock_guard lock(mutex_);
  for (const auto& peer : peers_) {
    if (peer->id() != self_ && !membership_.is_up(peer->id())) return;
  }
  if (ready_) return;
  ready_ = true;
  Life starting = Life::starting;
  life_.compare_exchange_strong(starting, Life::serving);
  if (ready_waiter_) ready_waiter_->notify();
}

void WorkerCore::fail_start(Error error) {
  const std::lock_guard lock(mutex_);
  if (ready_ || start_error_) return;
  start_error_ = std::move(error);
  if (ready_waiter_) ready_waiter_->notify();
}

Result<void> WorkerCore::wait_until_ready() {
  const TimePoint deadline = options_.executor->clock().now() + options_.start_timeout;
  options_.executor->with_wait([&](Executor::Wait& wait) {
    {
      const std::lock_guard lock(mutex_);
      if (ready_ || start_error_) return;
      ready_waiter_ = &wait.point();
    }
    wait.wait(deadline, nullptr);
    const std::lock_guard lock(mutex_);
    ready_waiter_ = nullptr;
  });
  const std::lock_guard lock(mutex_);
  if (ready_) return {};
  if (start_error_) return *start_error_;
  std::string missing;
  std::size_t here = 0;
  for (const auto& peer : peers_) {
    if (peer->id() == self_ || membership_.is_up(peer->id())) {
      ++here;
    } else {
      missing += (missing.empty() ? "" : ", ") + peer->name();
    }
  }
  std::string text = missing + (peers_.size() - here == 1 ? " has" : " have") + " not come within " +
                     std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(options_.start_timeout).count()) +
                     "ms; " + std::to_string(here) + " of " + std::to_string(peers_.size()) + " are here";
  if (last_dial_error_.code() != Errc::ok) text += " (last: " + last_dial_error_.text() + ")";
  start_error_ = Error(Errc::timeout, name(), std::move(text));
  return *start_error_;
}

// ---- finding

Result<Peer> WorkerCore::find_peer(std::string_view name) {
  const auto found = ids_.find(std::string(name));
  if (found != ids_.end()) return Peer(peers_[found->second.value]);
  std::string known;
  for (const auto& peer : peers_) known += (known.empty() ? "" : ", ") + peer->name();
  return Error(Errc::unknown_worker, "no worker '" + std::string(name) + "' in this job; there are: " + known);
}

Result<Peer> WorkerCore::find_peer(WorkerId id) {
  if (id.value < peers_.size()) return Peer(peers_[id.value]);
  return Error(Errc::unknown_worker, "no worker number " + std::to_string(id.value) + " in this job of " +
                                         std::to_string(peers_.size()));
}

std::shared_ptr<Session> WorkerCore::session_with(WorkerId peer, Incarnation incarnation) {
  if (peer.value >= peers_.size()) return nullptr;
  auto session = peers_[peer.value]->session();
  return session && session->peer().incarnation == incarnation ? session : nullptr;
}

caf::strong_actor_ptr WorkerCore::fork_proxy(ForkId fork, const rpc::PeerSession& at) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find({at.peer, at.incarnation, at.connection});
    if (found != sessions_.end()) session = found->second;
  }
  if (session) return session->actors().proxy(transport::Address::of(fork));
  return transport::ActorExchange::dead_proxy(*actor_host_, Error(Errc::peer_down, "the session of this fork is over"));
}

std::string WorkerCore::address() const {
  const std::lock_guard lock(mutex_);
  return own_address_;
}

std::string WorkerCore::channel_kind(const std::string& peer) const {
  const auto found = ids_.find(peer);
  if (found == ids_.end()) return {};
  const auto session = peers_[found->second.value]->session();
  return session ? session->channel_kind() : "";
}

WorkerCounters WorkerCore::counters() const {
  WorkerCounters sum;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, session] : sessions_) {
      const auto counters = session->counters();
      sum.frames_out += counters.frames_out;
      sum.frames_in += counters.frames_in;
      sum.bytes_out += counters.bytes_out;
      sum.bytes_in += counters.bytes_in;
      sum.requests_in_flight += session->requests_in_flight();
    }
  }
  sum.calls_served = calls_served_.load();
  sum.owner_rrefs = rrefs_.owners();
  sum.user_rrefs = rrefs_.users();
  return sum;
}

// ---- leaving

void WorkerCore::on_end(Session& session, const Error& reason) {
  const auto& peer = session.peer();
  rrefs_.on_session_end(session);
  bool was_up = false;
  if (peer.id != self_) {
    const std::lock_guard lock(mutex_);
    was_up = membership_.on_down(peer.id, peer.incarnation);
  }
  if (peers_[peer.id.value]->session().get() == &session) peers_[peer.id.value]->set_session(nullptr);
  if (was_up && hook()) hook()->on_peer_down(peer.id, peer.incarnation);
  if (was_up && life_ == Life::serving) {
    log("lost " + peer.name + ": " + reason.message());
    if (options_.on_peer_down) options_.on_peer_down(peer.name, reason);
  }
  // The last act: stop() goes on when no session is left.
  const std::lock_guard lock(mutex_);
  sessions_.erase({peer.id, peer.incarnation, session.connection()});
  if (sessions_.empty() && sessions_waiter_) sessions_waiter_->notify();
}

void WorkerCore::notify_if_idle() {
  if (own_calls_.load() != 0 || served_calls_.load() != 0) return;
  const std::lock_guard lock(mutex_);
  if (idle_waiter_) idle_waiter_->notify();
}

void WorkerCore::wait_until_idle(TimePoint deadline) {
  options_.executor->with_wait([&](Executor::Wait& wait) {
    {
      const std::lock_guard lock(mutex_);
      if (own_calls_.load() == 0 && served_calls_.load() == 0) return;
      idle_waiter_ = &wait.point();
    }
    wait.wait(deadline, nullptr);
    const std::lock_guard lock(mutex_);
    idle_waiter_ = nullptr;
  });
}

void WorkerCore::stop() {
  if (life_.exchange(Life::draining) >= Life::draining) return;
  const TimePoint deadline = options_.executor->clock().now() + options_.stop_timeout;
  const Error leaving(Errc::shut_down, name(), "this worker has left");
  wait_until_idle(deadline);
  if (listener_) listener_->close();
  rrefs_.end_all(leaving);

  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) session->close();
  const auto wait_for_sessions = [this](TimePoint until) {
    options_.executor->with_wait([&](Executor::Wait& wait) {
      {
        const std::lock_guard lock(mutex_);
        if (sessions_.empty()) return;
        sessions_waiter_ = &wait.point();
      }
      wait.wait(until, nullptr);
      const std::lock_guard lock(mutex_);
      sessions_waiter_ = nullptr;
    });
  };
  wait_for_sessions(deadline);
  for (const auto& session : sessions) session->abort(leaving);
  wait_for_sessions(kNever);

  // All that is left of references ends now: nothing is waited for any more.
  rrefs_.end_all(leaving);
  options_.executor->with_wait([&](Executor::Wait& wait) {
    rrefs_.when_empty([&] { wait.point().notify(); });
    wait.wait(kNever, nullptr);
  });
  caf::anon_send_exit(root_, caf::exit_reason::user_shutdown);
  root_ = nullptr;
  for (const auto& peer : peers_) peer->set_session(nullptr);
  sessions.clear();
  actor_host_.reset();
  life_ = Life::ended;
}

}  // namespace caftan::actors
