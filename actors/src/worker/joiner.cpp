#include "worker/joiner.hpp"

#include <algorithm>
#include <utility>

#include <caf/send.hpp>

#include "caftan/app/internal/settings_digest.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"
#include "worker/local_network.hpp"
#include "worker/root_actor.hpp"
#include "worker/worker_options.hpp"

namespace caftan::actors {

using transport::Session;

Joiner::Joiner(const Parts& parts, net::Membership membership)
    : parts_(parts),
      leaver_({parts.ports, parts.work, parts.peers, *this, parts.options.on_peer_returned}),
      meeting_(std::move(membership), meeting_options(parts.options)) {}

// ---- launching

Result<void> Joiner::launch(caf::actor root) {
  root_ = std::move(root);
  // Calls to this worker itself go through a channel like all others.
  auto [here, there] = transport::make_loopback_pair(*parts_.options.executor);
  add_session(identity(), kSelfServing, std::move(there), {}, Use::serving);
  add_session(identity(), other_end_of_self(kSelfServing), std::move(here), {}, Use::calls);

  if (parts_.options.network) {
    if (const auto met = meet_neighbours(); !met) return met;
  }
  const std::string& address = parts_.options.world[parts_.ports.id().value].address;
  if (!parts_.options.network || !address.empty()) {
    if (const auto listening = listen_at(address); !listening) return listening;
  }
  std::vector<WorkerId> to_dial;
  {
    const base::LockGuard lock(mutex_);
    to_dial = meeting_.to_dial();
  }
  for (const WorkerId peer : to_dial) dial(peer);
  publish_view();  // it may be alone
  report_if_ready();
  return {};
}

Result<void> Joiner::meet_neighbours() {
  auto& network = *parts_.options.network->state_;
  const auto neighbours = network.enter(parts_.ports.name(), self(), parts_.options.world);
  if (!neighbours) return neighbours.error();
  for (const auto& [other, connection] : *neighbours) {
    const transport::PeerIdentity their_identity = other->identity();
    auto [mine, theirs] = network.connect(*parts_.options.executor, parts_.ports.name(), their_identity.name);
    add_local_session(their_identity, connection, std::move(mine));
    other->add_local_session(identity(), connection, std::move(theirs));
  }
  return {};
}

transport::HandshakeIoOptions Joiner::handshake_io() {
  transport::HandshakeIoOptions options = io_options(parts_.options);
  options.note = [weak = std::weak_ptr(self())](const std::string& peer, const std::string& note) {
    if (const auto self = weak.lock()) self->write_note(peer, note);
  };
  return options;
}

Result<void> Joiner::listen_at(const std::string& address) {
  // A member that others dial needs an address in `options.world`; the last one dials all others and needs none.
  if (address.empty() && parts_.ports.id().value + 1 == parts_.peers.size()) return {};
  const std::string at = address.empty() ? "tcp:127.0.0.1:0" : address;
  const std::weak_ptr weak(self());
  auto listener = transport::listen(
      *parts_.options.executor, at,
      [weak]() -> Result<net::HandshakeOptions> {
        if (const auto self = weak.lock()) return self->handshake_options(0);
        return Error(Errc::shut_down, "this worker has left");
      },
      handshake_io(),
      [weak](Result<transport::Accepted> result) {
        const auto self = weak.lock();
        if (!self) return;
        if (!result) return self->refused(result.error());
        self->on_accepted(*std::move(result));
      });
  if (!listener) return listener.error().at(parts_.ports.name());
  listener_ = std::move(*listener);
  {
    const base::LockGuard lock(mutex_);
    address_ = listener_->address();
  }
  listener_->start();
  return {};
}

std::string Joiner::address() const {
  const base::LockGuard lock(mutex_);
  return address_;
}

// ---- handshakes

transport::PeerIdentity Joiner::identity() const { return make_identity(parts_.options, parts_.ports.life()); }

net::HandshakeOptions Joiner::handshake_options(std::uint64_t connection) {
  net::HandshakeOptions handshake = make_handshake_options(parts_.options, parts_.ports.life(), connection, address());
  const bool is_dialled = connection == 0;
  handshake.accept = [weak = std::weak_ptr(self()), is_dialled](const net::PeerInfo& peer) -> Result<void> {
    if (const auto self = weak.lock()) return self->accept(peer, is_dialled);
    return Error(Errc::shut_down, "this worker has left");
  };
  return handshake;
}

Result<void> Joiner::accept(const net::PeerInfo& peer, bool is_dialled) {
  if (peer.purpose != net::Purpose::session) {
    return Error(Errc::unsupported, "this version takes connections for sessions only");
  }
  if (auto named = check_certificate(parts_.options, peer); !named) return named;
  // Only the worker that was dialled compares the settings: it knows that the dialling peer has proven the secret, so
  // that its refusal is not about a forged hello.
  const auto same =
      is_dialled ? app::check_same_settings({parts_.ports.name(), parts_.options.settings}, {peer.name, peer.settings})
                 : Result<void>();
  const base::LockGuard lock(mutex_);
  if (!same) {
    meeting_.on_other_settings(same.error());
    return same;
  }
  if (auto known = meeting_.admit({peer.name, peer.id, peer.incarnation, peer.address}); !known) return known;
  return parts_.peers.check_new({{peer.id, peer.incarnation}, peer.connection});
}

/// Reports the refusal to users of this worker, too, who may wait for the refused peer.
void Joiner::refused(const Error& error) {
  parts_.log.write_refusal(error);
  bool report = false;
  {
    const base::LockGuard lock(mutex_);
    report = meeting_.on_refused(error);
    notify_if_decided();
  }
  if (report && parts_.options.on_refused) parts_.options.on_refused(error);
}

// ---- dialling

/// Dials until the peer answers or is not to be dialled any more. The address of a peer that has none in the options is
/// learnt from the coordinator's view.
void Joiner::dial(WorkerId peer) {
  std::optional<std::string> address;
  std::uint64_t connection = 0;
  {
    const base::LockGuard lock(mutex_);
    address = meeting_.begin_dial(peer, now());
    if (!address) return;
    connection = next_connection_++;
  }
  transport::dial(*parts_.options.executor, *address, handshake_options(connection), parts_.peers.at(peer).name(),
                  handshake_io(), [weak = std::weak_ptr(self()), peer](Result<transport::Accepted> result) {
                    const auto self = weak.lock();
                    if (!self) return;
                    if (!result) return self->dial_failed(peer, result.error());
                    {
                      const base::LockGuard lock(self->mutex_);
                      self->meeting_.end_dial(peer);
                    }
                    self->on_accepted(*std::move(result));
                  });
}

void Joiner::dial_failed(WorkerId peer, const Error& error) {
  net::Meeting::FailedDial failed;
  {
    const base::LockGuard lock(mutex_);
    failed = meeting_.on_dial_failed(peer, error, now());
    notify_if_decided();
  }
  if (failed.duplicate) {
    parts_.log.write("refused, and tries again until start_timeout: " + failed.duplicate->message());
    if (parts_.options.on_duplicate) parts_.options.on_duplicate(*failed.duplicate);
  }
  if (failed.given_up) parts_.log.write("refused, and not tried again: " + failed.given_up->message());
  if (!failed.again) return;
  parts_.options.executor->post_at(*failed.again, [weak = std::weak_ptr(self()), peer] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const base::LockGuard lock(self->mutex_);
      self->meeting_.end_dial(peer);
    }
    self->dial(peer);
  });
}

// ---- sessions

void Joiner::on_accepted(transport::Accepted&& accepted) {
  const net::PeerInfo& peer = accepted.peer;
  const std::string note = accepted.channel->note();
  if (add_session({{peer.id, peer.incarnation}, peer.name, peer.limits, peer.agreed_features}, peer.connection,
                  std::move(accepted.channel), accepted.early, Use::calls)) {
    if (!note.empty()) write_note(peer.name, note);
    on_connected({peer.id, peer.incarnation}, peer.address);
  }
}

void Joiner::write_note(const std::string& peer, const std::string& note) {
  parts_.log.write("channel to " + peer + ": " + note);
}

void Joiner::add_local_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                               std::shared_ptr<transport::Channel> channel) {
  if (add_session(peer, connection, std::move(channel), {}, Use::calls)) on_connected(peer.life, {});
}

std::shared_ptr<Session> Joiner::add_session(const transport::PeerIdentity& peer, std::uint64_t connection,
                                             std::shared_ptr<transport::Channel> channel, wire::ByteView early,
                                             Use use) {
  const std::string_view kind = channel->kind();
  transport::SessionOptions options = session_options(parts_.options);
  if (!channel->may_fall_silent()) options.liveness.reset();  // SE-32
  transport::PollingExecutor& executor = *parts_.options.executor;
  auto session =
      Session::make({executor, executor.pool(), parts_.frames}, peer, connection, std::move(channel), options);
  remote::ActorExchange::attach(*session, parts_.ports.actor_host());
  remote::ActorExchange::of(*session).export_at(remote::Address::root(), caf::actor_cast<caf::strong_actor_ptr>(root_));
  if (auto kept = keep(session); !kept) {
    parts_.log.write(peer.name + " was refused: " + kept.error().message());
    return nullptr;  // closes the channel
  }
  if (use == Use::calls) parts_.peers.at(peer.life.id).set_session(session);
  session->start(early);
  if (use == Use::calls) announce_session();
  if (peer.life.id != parts_.ports.id()) parts_.log.write("connected with " + peer.name + " over " + std::string(kind));
  return session;
}

/// Enters a session that is about to start. Errors: why its peer may not have one.
Result<void> Joiner::keep(const std::shared_ptr<Session>& session) {
  const transport::PeerIdentity& peer = session->peer();
  // Check and entry are one step under the lock: a worker that leaves closes the sessions that were entered before
  // `leave` took the lock, and no session is entered later.
  const base::LockGuard lock(mutex_);
  if (auto is_new = parts_.peers.check_new(peer_session(*session)); !is_new) return is_new;
  if (auto may = meeting_.on_session_start(peer.life, session->peer_place()); !may) return may;
  parts_.peers.add(session);
  return {};
}

void Joiner::on_connected(const WorkerLife& peer, const std::string& address) {
  {
    const base::LockGuard lock(mutex_);
    meeting_.on_connected(peer, address);
  }
  if (parts_.peers.session_with(peer)) leaver_.on_up(peer);
  publish_view();
  report_if_ready();
}

void Joiner::announce_session() {
  for (Service* service : parts_.services) service->on_session_start();
}

net::Meeting::Loss Joiner::on_session_end(Session& session, const Error& reason) {
  const transport::PeerIdentity& peer = session.peer();
  const base::LockGuard lock(mutex_);
  const net::Meeting::Loss loss = meeting_.on_session_end(peer.life);
  if (loss.report == net::Meeting::Loss::Report::after_start) {
    lost_at_start_[peer.life.id] = {session.shared_from_this(), reason};
  }
  if (loss.report != net::Meeting::Loss::Report::no)
    caf::anon_send(root_, PeerLost{session.shared_from_this(), reason});
  return loss;
}

void Joiner::follow_up(const Session& session, const Error& reason, const net::Meeting::Loss& loss) {
  if (loss.report == net::Meeting::Loss::Report::now) report_lost(session, reason);
  if (loss.dial) dial(session.peer().life.id);
}

Error Joiner::why_unreachable(WorkerId peer) const {
  const base::LockGuard lock(mutex_);
  return meeting_.why_unreachable(peer);
}

void Joiner::report_lost(const Session& session, const Error& reason) {
  const std::string& peer = session.peer().name;
  Error error = reason;
  std::string line = "lost " + peer + ": " + reason.message();
  if (session.has_left()) {
    const Error& farewell = session.farewell();
    const bool in_good_order = farewell.code() == Errc::ok;
    error = in_good_order ? Error(Errc::shut_down, peer, peer + " has left") : farewell;
    line = peer + " has left" + (in_good_order ? "" : ": " + farewell.message());
  }
  parts_.log.write(line);
  if (parts_.options.on_peer_down) parts_.options.on_peer_down(peer, error);
}

// ---- the start

/// On the coordinator: once all members have joined, sends each of them the addresses of all.
void Joiner::publish_view() {
  std::optional<net::View> view;
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const base::LockGuard lock(mutex_);
    view = meeting_.take_view();
    if (!view) return;
    for (const net::Join& member : view->members) {
      if (member.id != parts_.ports.id()) sessions.push_back(parts_.peers.at(member.id).session());
    }
  }
  for (const auto& session : sessions) {
    if (!session) continue;
    const auto sent = send_to_root(*session, caf::make_message(*view));
    // The loss of a worker that is gone is noticed by the end of its session.
    if (!sent && sent.error().code() != Errc::peer_down) {
      return fail_start(
          Error(sent.error().code(), parts_.ports.name(), "the list of all workers: " + sent.error().message()));
    }
  }
}

void Joiner::on_view(const Session& from, const net::View& view) {
  std::vector<WorkerId> to_dial;
  {
    const base::LockGuard lock(mutex_);
    auto applied = meeting_.on_view(from.peer().life.id, view);
    if (!applied) {
      parts_.log.write("the coordinator's view was refused: " + applied.error().message());
      return;
    }
    to_dial = *std::move(applied);
  }
  for (const WorkerId peer : to_dial) dial(peer);
}

/// Once this worker has a session with every other, it reports so to the coordinator; once all have, the coordinator
/// announces it (SE-27).
void Joiner::report_if_ready() {
  std::optional<net::Meeting::ReadyReport> report;
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const base::LockGuard lock(mutex_);
    report = meeting_.take_ready_report();
    if (!report) return;
    for (const WorkerId peer : report->receivers) sessions.push_back(parts_.peers.at(peer).session());
  }
  for (const auto& session : sessions) {
    // The message always fits, and a worker that is gone by now does not need it.
    if (session) (void)send_to_root(*session, caf::make_message(net::Met{}));
  }
  if (report->ends_start) end_start();
}

void Joiner::on_met(Session& from) {
  using OnMet = net::Meeting::OnMet;
  OnMet next{};
  {
    const base::LockGuard lock(mutex_);
    next = meeting_.on_met(from.peer().life);
  }
  switch (next) {
    case OnMet::nothing:
      return;
    case OnMet::look:
      return report_if_ready();
    case OnMet::answer:
      return (void)send_to_root(from, caf::make_message(net::Met{}));
    case OnMet::end_start:
      return end_start();
  }
}

void Joiner::end_start() {
  decltype(lost_at_start_) at_start;
  std::vector<LostPeer> lost;
  {
    const base::LockGuard lock(mutex_);
    const auto peers = meeting_.end_start();
    if (!peers) return;
    at_start.swap(lost_at_start_);
    for (const WorkerId peer : *peers) lost.push_back(at_start.at(peer));
    notify_if_decided();
  }
  if (lost.empty()) return;
  announce_session();  // lets references fail that wait for a session with a worker that is lost
  for (const LostPeer& peer : lost) report_lost(*peer.session, peer.reason);
}

void Joiner::fail_start(Error error) {
  const base::LockGuard lock(mutex_);
  meeting_.fail(std::move(error));
  notify_if_decided();
}

void Joiner::notify_if_decided() {
  if (ready_waiter_ && meeting_.outcome()) std::exchange(ready_waiter_, nullptr)->notify();
}

Result<void> Joiner::send_to_root(Session& peer, const caf::message& message) {
  return remote::ActorExchange::send(remote::ActorExchange::of(peer).proxy(remote::Address::root()),
                                     caf::actor_cast<caf::strong_actor_ptr>(root_), message);
}

bool Joiner::start_is_over() const {
  const base::LockGuard lock(mutex_);
  return meeting_.start_is_over();
}

Result<void> Joiner::wait_until_ready() {
  const base::TimePoint deadline = now() + parts_.options.start_timeout;
  parts_.options.executor->with_wait([&](base::Executor::Wait& wait) {
    {
      const base::LockGuard lock(mutex_);
      if (meeting_.outcome()) return;
      ready_waiter_ = &wait.point();
    }
    wait.wait(deadline, nullptr);
    const base::LockGuard lock(mutex_);
    ready_waiter_ = nullptr;
  });
  const base::LockGuard lock(mutex_);
  meeting_.fail_late(siblings_);
  return *meeting_.outcome();
}

// ---- leaving

void Joiner::leave() {
  const base::LockGuard lock(mutex_);
  meeting_.leave();
}

void Joiner::stop_listening() {
  if (listener_) listener_->close();
}

void Joiner::leave_other_hosts(const Error& reason) {
  if (parts_.options.network) return;
  for (const auto& session : parts_.peers.sessions()) {
    if (std::ranges::find(siblings_, session->peer().name) == siblings_.end()) session->writer().close(reason);
  }
}

void Joiner::close() {
  if (root_) caf::anon_send_exit(std::exchange(root_, nullptr), caf::exit_reason::user_shutdown);
  decltype(lost_at_start_) lost;
  {
    const base::LockGuard lock(mutex_);
    lost.swap(lost_at_start_);
  }
}

}  // namespace caftan::actors
