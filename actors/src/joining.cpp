// How a worker comes to its sessions with the others: in one process, or by listening and dialling.

#include <algorithm>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "autograd_host.hpp"
#include "worker_core.hpp"

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

/// The root that peers talk to before they know any other actor of this worker.
class WorkerCore::RootActor final : public caf::event_based_actor {
 public:
  RootActor(caf::actor_config& config, WorkerCore& core) : caf::event_based_actor(config), core_(core) {
    set_exit_handler([this](const caf::exit_msg& exit) {
      if (exit.reason == caf::exit_reason::user_shutdown) quit(exit.reason);
    });
    set_down_handler([this](const caf::down_msg& down) {
      if (const auto asker = parked_.extract(down.source.id())) {
        core_.rrefs_.asker_gone(asker.mapped().first, asker.mapped().second);
      }
    });
  }
  const char* name() const override { return "worker_actor"; }
  caf::behavior make_behavior() override {
    return {
        [this](const ForkRequested& request) {
          const auto session = transport::ActorExchange::session_of(current_sender());
          // A fork request is about the actor that sends it: nobody registers forks for others.
          if (!session) return;
          const rpc::PeerSession asker = peer_session(*session);
          const caf::strong_actor_ptr child = current_sender();
          if (!core_.rrefs_.on_fork_requested(request, asker, child)) return;
          parked_[child->id()] = {request.fork, asker};
          monitor(caf::actor_cast<caf::actor>(child));
        },
        [this](const net::View& view) {
          const auto session = transport::ActorExchange::session_of(current_sender());
          if (session && session->peer().id == WorkerId{0}) core_.apply_view(view);
        },
        [this](const net::Met&) {
          if (const auto session = transport::ActorExchange::session_of(current_sender())) core_.on_met(session);
        },
    };
  }

 private:
  WorkerCore& core_;
  std::map<caf::actor_id, std::pair<ForkId, rpc::PeerSession>> parked_;  // who asked too early, until it is gone
};

Result<void> WorkerCore::launch() {
  root_ = actor_host_->spawn<RootActor>(*this);
  autograd_->launch();
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
  if (self_ == WorkerId{0}) publish_view();  // it may be alone
  check_met();
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
        const auto self = weak.lock();
        if (!self) return;
        if (!result) return self->refused(result.error());
        self->greeted(*std::move(result));
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
  handshake.self.versions = {2, 2};  // 1: passes without held objects, releases that list open contexts
  handshake.self.cluster = options_.cluster;
  handshake.self.name = options_.name;
  handshake.self.id = self_;
  handshake.self.incarnation = incarnation_;
  handshake.self.limits = own_limits();
  handshake.self.features = kFeatures;
  handshake.self.connection = connection;
  handshake.self.settings = options_.settings;
  {
    const std::lock_guard lock(mutex_);
    handshake.self.address = own_address_;
  }
  handshake.secret = net::Secret(options_.secret);
  handshake.allow_no_secret = options_.secret.empty();
  const bool is_dialled = connection == 0;
  handshake.accept = [weak = std::weak_ptr(shared_core()), is_dialled](const net::PeerInfo& peer) -> Result<void> {
    const auto self = weak.lock();
    if (!self) return Error(Errc::shut_down, "this worker has left");
    if (peer.purpose != net::Purpose::session) {
      return Error(Errc::unsupported, "this version takes connections for sessions only");
    }
    // One side is enough, and the one that was dialled knows that its refusal was not forged: the peer has proven the
    // secret to it.
    if (is_dialled) {
      if (auto same = self->check_settings(peer); !same) return same;
    }
    const std::lock_guard lock(self->mutex_);
    if (auto known = self->membership_.admit({peer.name, peer.id, peer.incarnation, peer.address}); !known) {
      return known;
    }
    return self->check_connection_locked({peer.id, peer.incarnation, peer.connection});
  };
  return handshake;
}

/// Requests, references and read bytes belong to one connection: a second one under its number is no part of it.
Result<void> WorkerCore::check_connection_locked(const SessionKey& key) const {
  if (!sessions_.contains(key)) return {};
  return Error(Errc::duplicate_worker, "connection " + std::to_string(std::get<2>(key)) + " of this life of " +
                                           peers_[std::get<0>(key).value]->name() + " is open already");
}

/// During the start every member that is not connected may be dialled; afterwards only a life that the head has
/// announced and that this worker has not met, for as long as a start may take (SE-34).
bool WorkerCore::may_dial_locked(const PeerState& peer) const {
  if (life_ == Life::starting) return !start_error_;
  return life_ == Life::serving && peer.announced.value != 0 && peer.announced != peer.met &&
         peer.dial_pause.has_begun_within(options_.start_timeout, options_.executor->clock().now());
}

/// Dials until the peer answers or is not to be dialled any more. A peer without a known address is learnt from the
/// head's view.
void WorkerCore::dial_peer(WorkerId peer) {
  std::string address;
  std::uint64_t connection = 0;
  {
    const std::lock_guard lock(mutex_);
    PeerState& state = *peers_[peer.value];
    if (state.dialling || membership_.is_up(peer) || !may_dial_locked(state)) return;
    address = state.address;
    if (address.empty()) return;
    state.dialling = true;
    connection = next_connection_++;
  }
  transport::dial(*options_.executor, address, handshake_options(connection), peers_[peer.value]->name(), {},
                  [weak = std::weak_ptr(shared_core()), peer](Result<transport::Greeted> result) {
                    const auto self = weak.lock();
                    if (!self) return;
                    if (!result) return self->dial_failed(peer, result.error());
                    {
                      const std::lock_guard lock(self->mutex_);
                      self->peers_[peer.value]->dialling = false;
                    }
                    self->greeted(*std::move(result));
                  });
}

/// SE-33: who may still come is dialled again.
void WorkerCore::dial_failed(WorkerId peer, const Error& error) {
  // A duplicate may be an earlier life that froze: it is lost when it has been silent for long enough.
  const bool is_duplicate = error.code() == Errc::duplicate_worker;
  const bool may_come = is_duplicate || error.code() == Errc::peer_down || error.code() == Errc::timeout;
  PeerState& state = *peers_[peer.value];
  const TimePoint now = options_.executor->clock().now();
  TimePoint again = now;
  const Error refusal(error.code(), state.name(), error.text());
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    if (may_come) last_dial_error_ = error;
    is_news =
        is_duplicate && std::ranges::all_of(peers_, [](const auto& p) { return p->duplicate.code() == Errc::ok; });
    state.duplicate = is_duplicate ? refusal : Error();
    state.dialling = may_come && may_dial_locked(state);
    if (may_come && !state.dialling) return;
    again += state.dial_pause.after_failure(now);
  }
  if (!may_come) return fail_start(refusal);
  // Reports a refusal as duplicate_worker at once; this worker dials again until start_timeout.
  if (is_news) {
    log("refused, and tries again until start_timeout: " + refusal.message());
    if (options_.on_duplicate) options_.on_duplicate(refusal);
  }
  options_.executor->post_at(again, [weak = std::weak_ptr(shared_core()), peer] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->peers_[peer.value]->dialling = false;
    }
    self->dial_peer(peer);
  });
}

void WorkerCore::greeted(transport::Greeted&& greeted) {
  const net::PeerInfo& peer = greeted.peer;
  if (add_session({peer.id, peer.name, peer.incarnation, peer.limits, peer.agreed_features}, peer.connection,
                  std::move(greeted.channel), greeted.early, true)) {
    on_member_up(peer.id, peer.incarnation, peer.address);
  }
}

void WorkerCore::add_local_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                                   std::shared_ptr<transport::Channel> channel) {
  if (add_session(peer, connection, std::move(channel), {}, true)) on_member_up(peer.id, peer.incarnation, {});
}

/// @param primary  the end that calls of this worker use
std::shared_ptr<Session> WorkerCore::add_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                                                 std::shared_ptr<transport::Channel> channel, wire::ByteView early,
                                                 bool primary) {
  const std::string_view kind = channel->kind();
  transport::SessionLimits limits = session_limits();
  if (kind == "loopback") limits.liveness.reset();  // SE-32
  auto session = Session::make({*options_.executor, *actor_host_, options_.executor->pool(), *this}, peer, connection,
                               std::move(channel), limits);
  session->actors().export_at(transport::Address::root(), caf::actor_cast<caf::strong_actor_ptr>(root_));
  if (auto kept = keep_session(session); !kept) {
    log(peer.name + " was refused: " + kept.error().message());
    return nullptr;  // closes the channel
  }
  if (primary) peers_[peer.id.value]->set_session(session);
  session->start(early);
  if (primary) rrefs_.on_session_start();
  if (peer.id != self_) log("connected with " + peer.name + " over " + std::string(kind));
  return session;
}

Result<void> WorkerCore::keep_session(const std::shared_ptr<Session>& session) {
  const transport::PeerIdentity& peer = session->peer();
  const SessionKey key{peer.id, peer.incarnation, session->connection()};
  const std::lock_guard lock(mutex_);
  // stop() has looked at sessions_ already, or will not see this one.
  if (is_leaving()) return Error(Errc::shut_down, "this worker is leaving");
  if (auto is_new = check_connection_locked(key); !is_new) return is_new;
  if (peer.id != self_) {
    if (const auto up = membership_.on_up(peer.id, peer.incarnation, session->peer_place()); !up) return up.error();
  }
  sessions_[key] = session;
  return {};
}

void WorkerCore::on_member_up(WorkerId peer, Incarnation life, const std::string& address) {
  {
    const std::lock_guard lock(mutex_);
    PeerState& state = *peers_[peer.value];
    state.learn_address(address);
    state.met = life;
    state.dial_pause.reset();
    state.duplicate = Error();
    const std::shared_ptr<Session> session = self_ == WorkerId{0} ? state.session() : nullptr;
    if (session) {
      const auto changed = membership_.join({state.name(), peer, life, state.address});
      // SE-34: a new life has an address of its own, which all hear of.
      if (changed && *changed) view_published_ = false;
    }
  }
  if (self_ == WorkerId{0}) publish_view();
  check_met();
}

}  // namespace caftan::actors
