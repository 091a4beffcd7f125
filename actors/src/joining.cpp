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

namespace {
constexpr Duration kDialAgain = std::chrono::milliseconds(20);
}  // namespace

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
  handshake.self.limits = own_limits();
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
    if (!dialled) return refused(error);
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
  if (add_session({peer.id, peer.name, peer.incarnation, peer.limits}, peer.connection, std::move(result->channel),
                  result->early, true)) {
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
  if (primary) rrefs_.on_session_start();
  if (peer.id != self_) log("connected with " + peer.name + " over " + kind);
  return session;
}

void WorkerCore::on_member_up(WorkerId peer, const std::string& address) {
  {
    const std::lock_guard lock(mutex_);
    if (peers_[peer.value]->address.empty()) peers_[peer.value]->address = address;
    peers_[peer.value]->met = true;
    if (self_ == WorkerId{0}) {
      const Session* session = peers_[peer.value]->session().get();
      if (session) {
        (void)membership_.join(
            {peers_[peer.value]->name(), peer, session->peer().incarnation, peers_[peer.value]->address});
      }
    }
  }
  if (self_ == WorkerId{0}) publish_view();
  check_met();
}

}  // namespace caftan::actors
