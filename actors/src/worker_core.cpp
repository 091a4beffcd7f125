// Making a worker, finding peers, and leaving. How it meets the others is in joining.cpp and meeting.cpp.

#include "worker_core.hpp"

#include <algorithm>
#include <random>

#include <caf/send.hpp>

#include "autograd_host.hpp"
#include "caftan/autograd/recording_hook.hpp"
#include "caftan/autograd/rref_backward.hpp"
#include "optimizer_actor.hpp"

namespace caftan::actors {

using transport::Session;

namespace {

/// For what stop() ends at its deadline to be over.
constexpr Duration kStopGrace = std::chrono::seconds(1);

Incarnation random_incarnation() {
  std::random_device device;
  std::uint64_t value = 0;
  while (value == 0) value = (std::uint64_t{device()} << 32) ^ device();
  return Incarnation{value};
}

}  // namespace

Result<std::shared_ptr<WorkerCore>> WorkerCore::make(WorkerOptions options, Registry registry) {
  add_optimizers(registry);
  autograd::add_rref_backward(registry);
  if (auto frozen = registry.freeze(); !frozen) return frozen.error();
  std::vector<net::WorldEntry> world;
  std::optional<WorkerId> self;
  for (const WorkerAddress& member : options.world) {
    const WorkerId id{static_cast<std::uint32_t>(world.size())};
    if (member.name == options.name) self = id;
    if (!member.address.empty()) {
      if (auto fits = transport::check_address(member.address); !fits) return fits.error().at(member.name);
    }
    world.push_back({member.name, id, member.address});
  }
  if (!self) return Error(Errc::invalid_config, "worker '" + options.name + "' is not a member of its own world");
  const WorkerAddress& head = options.world.front();
  if (!options.network && self->value != 0 && !transport::is_dialable(head.address)) {
    return Error(Errc::invalid_config, "worker '" + options.name + "' cannot dial '" + head.name +
                                           "', the first of its world, at '" + head.address + "'");
  }
  if (options.peer_timeout < 2 * options.heartbeat || options.heartbeat <= Duration::zero()) {
    return Error(Errc::invalid_config, "peer_timeout must be at least two heartbeats");
  }
  const WorkerLimits& limits = options.limits;
  constexpr std::uint64_t kMostMessage = 0xffff'ffff;  // a frame counts its parts in 32 bits
  if (limits.message == 0 || limits.message > kMostMessage || limits.window == 0 || limits.tensors == 0) {
    return Error(Errc::invalid_config, "WorkerLimits: message has 1 to " + std::to_string(kMostMessage) +
                                           " bytes, window and tensors are not 0");
  }
  if (options.rpc_timeout < Duration::zero()) {
    return Error(Errc::invalid_config, "rpc_timeout is negative; 0 means that calls have no time-out");
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
      rpc_timeout_(options_.rpc_timeout),
      self_(self),
      incarnation_(membership.self().incarnation),
      rrefs_(*this),
      autograd_(std::make_unique<AutogradHost>(*this, autograd::Life{self_, incarnation_})),
      hook_(std::make_unique<autograd::RecordingHook>(*autograd_, options_.hook)),
      dispatcher_(*this),
      membership_(std::move(membership)) {
  messages_.add<ForkRequested>("rref.fork");
  messages_.add<ForkAnswered>("rref.answer");
  messages_.add<ForkAccepted>("rref.accept");
  messages_.add<net::View>("membership.view");
  messages_.add<net::Met>("membership.met");
  messages_.add<PassEnvelope>("autograd.pass");
  messages_.add<GradientMessage>("autograd.gradient");
  actor_host_ = std::make_unique<transport::ActorHost>(*options_.executor, messages_, self_, incarnation_);
  actor_host_->set_named_actors(autograd_.get());
  for (const WorkerAddress& member : options_.world) {
    const WorkerId id{static_cast<std::uint32_t>(peers_.size())};
    // A port that the system chooses is learnt from the head, as an address that is left empty.
    peers_.push_back(std::make_shared<PeerState>(id, member.name, member.address, incarnation_));
    ids_[member.name] = id;
  }
}

WorkerCore::~WorkerCore() = default;

void WorkerCore::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

transport::SessionLimits WorkerCore::session_limits() const {
  transport::SessionLimits limits;
  limits.message = options_.limits.message;
  limits.tensor_bytes = options_.limits.tensor_bytes;
  limits.tensors = options_.limits.tensors;
  limits.requests = options_.limits.pending_calls;
  limits.window = options_.limits.window;
  limits.liveness = net::LivenessOptions{options_.heartbeat, options_.peer_timeout};
  return limits;
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
  return Error(Errc::unknown_worker,
               "no worker number " + std::to_string(id.value) + " in this job of " + std::to_string(peers_.size()));
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

std::vector<SentFrames> WorkerCore::traffic() const {
  std::vector<std::shared_ptr<Session>> sessions;
  net::Traffic sum;
  {
    const std::lock_guard lock(mutex_);
    sum = ended_traffic_;
    for (const auto& [key, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) sum += session->traffic();

  std::vector<SentFrames> sent;
  const auto list = [&sent](std::string kind, const net::Traffic::Sum& of) {
    if (of.frames != 0) sent.push_back({std::move(kind), of.frames, of.bytes});
  };
  for (std::size_t i = 0; i < wire::kFrameKinds; ++i) {
    const auto kind = static_cast<wire::FrameKind>(i);
    if (!wire::is_known(kind)) continue;
    if (kind != wire::FrameKind::actor_message) {
      list(std::string(wire::name_of(kind)), sum.of(kind));
      continue;
    }
    for (const auto& [message, of] : sum.messages()) list(messages_.name_of(message), of);
  }
  return sent;
}

// ---- leaving

void WorkerCore::on_end(Session& session, const Error& reason) {
  const auto& peer = session.peer();
  rrefs_.on_session_end(session);
  bool was_up = false;  // and this was the last session with that life
  bool is_serving = false;
  if (peer.id != self_) {
    const std::lock_guard lock(mutex_);
    was_up = membership_.on_down(peer.id, peer.incarnation);
    is_serving = life_ == Life::serving;
    if (was_up) peers_[peer.id.value]->has_met_all = false;
    if (was_up && life_ == Life::starting) {
      lost_at_start_[peer.id] = {sessions_[{peer.id, peer.incarnation, session.connection()}], reason};
    }
  }
  peers_[peer.id.value]->replace_session(session, other_session_with(session));
  if (was_up) {
    autograd_->on_peer_down({peer.id, peer.incarnation});
    hook_->on_peer_down(peer.id, peer.incarnation);
    if (is_serving) tell_lost(session, reason);
    // It may come back, at another address perhaps (SE-34).
    if (!options_.network && peer.id < self_) dial_peer(peer.id);
  }
  const net::Traffic sent = session.traffic();
  // The last act: stop() goes on when no session is left.
  const std::lock_guard lock(mutex_);
  ended_traffic_ += sent;
  sessions_.erase({peer.id, peer.incarnation, session.connection()});
  if (sessions_.empty() && sessions_waiter_) sessions_waiter_->notify();
}

/// Returns another session with the same life that calls can use, null without one.
std::shared_ptr<Session> WorkerCore::other_session_with(const Session& ended) const {
  const transport::PeerIdentity& peer = ended.peer();
  if (peer.id == self_) return nullptr;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, session] : sessions_) {
    if (session->peer().id == peer.id && session->peer().incarnation == peer.incarnation && !session->ended()) {
      return session;
    }
  }
  return nullptr;
}

void WorkerCore::tell_lost(const Session& session, const Error& reason) {
  const std::string& peer = session.peer().name;
  Error told = reason;
  std::string line = "lost " + peer + ": " + reason.message();
  if (session.has_left()) {
    const Error& farewell = session.farewell();
    const bool in_good_order = farewell.code() == Errc::ok;
    told = in_good_order ? Error(Errc::shut_down, peer, peer + " has left") : farewell;
    line = peer + " has left" + (in_good_order ? "" : ": " + farewell.message());
  }
  log(line);
  if (options_.on_peer_down) options_.on_peer_down(peer, told);
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

void WorkerCore::settle(TimePoint deadline) {
  wait_until_idle(deadline);
  options_.executor->with_wait([&](Executor::Wait& wait) {
    rrefs_.when_settled([&] { wait.point().notify(); });
    wait.wait(deadline, nullptr);
    rrefs_.when_settled(nullptr);
  });
}

void WorkerCore::leave_other_hosts(const Error& reason) {
  if (options_.network) return;
  std::vector<std::shared_ptr<Session>> elsewhere;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, session] : sessions_) {
      if (std::ranges::find(siblings_, session->peer().name) == siblings_.end()) elsewhere.push_back(session);
    }
  }
  for (const auto& session : elsewhere) session->close(reason);
}

StopReport WorkerCore::stop() {
  StopReport given_up;
  Life life = life_.load();
  while (life < Life::draining && !life_.compare_exchange_weak(life, Life::draining)) {
  }
  if (life >= Life::draining) return given_up;
  const Clock& clock = options_.executor->clock();
  const TimePoint deadline = clock.now() + options_.stop_timeout;
  wait_until_idle(deadline);
  for (const auto& [more, count] : repeated_.end_all()) log(RepeatedLines::with_count(more, count));
  given_up.calls = own_calls_.load();
  given_up.served_calls = served_calls_.load();
  if (listener_) listener_->close();
  given_up.contexts = autograd_->list().size();
  autograd_->end_all(*leaving());
  given_up.references = rrefs_.end_all(*leaving());
  close_sessions(deadline);
  if (!end_rest(clock.now() + kStopGrace)) {
    given_up.in_use = count_rest();
    log("stop: code on a runner still uses " + std::to_string(given_up.in_use) +
        " connections, references, contexts, passes or actors of this worker");
  }
  return given_up;
}

void WorkerCore::end() {
  (void)stop();
  if (!has_ended()) (void)end_rest(kNever);
}

void WorkerCore::begin_leaving(Error farewell) {
  farewell_ = std::move(farewell);
  Life life = life_.load();
  while (life < Life::leaving && !life_.compare_exchange_weak(life, Life::leaving)) {
  }
}

std::optional<Error> WorkerCore::leaving() const {
  if (!is_leaving()) return std::nullopt;
  auto cause = farewell_.code() == Errc::ok ? nullptr : std::make_shared<const Error>(farewell_);
  return Error(Errc::shut_down, name(), "this worker has left", std::move(cause));
}

void WorkerCore::close_sessions(TimePoint deadline) {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) session->close(farewell_);
  (void)wait_for_sessions(deadline);
  for (const auto& session : sessions) session->abort(*leaving());
}

bool WorkerCore::wait_for_sessions(TimePoint until) {
  return options_.executor->with_wait([&](Executor::Wait& wait) {
    {
      const std::lock_guard lock(mutex_);
      if (sessions_.empty()) return true;
      sessions_waiter_ = &wait.point();
    }
    (void)wait.wait(until, nullptr);
    const std::lock_guard lock(mutex_);
    sessions_waiter_ = nullptr;
    return sessions_.empty();
  });
}

bool WorkerCore::end_rest(TimePoint until) {
  if (!wait_for_sessions(until)) return false;
  // No frame comes any more: this ends all that is left of references and contexts.
  rrefs_.end_all(*leaving());
  autograd_->end_all(*leaving());
  const auto wait_for = [&](auto& host) {
    return options_.executor->with_wait([&](Executor::Wait& wait) {
      host.when_empty([&] { wait.point().notify(); });
      const bool ended = wait.wait(until, nullptr);
      host.when_empty(nullptr);
      return ended;
    });
  };
  if (!wait_for(rrefs_) || !wait_for(*autograd_)) return false;
  autograd_->close();
  if (root_) caf::anon_send_exit(std::exchange(root_, nullptr), caf::exit_reason::user_shutdown);
  for (const auto& peer : peers_) peer->set_session(nullptr);
  decltype(lost_at_start_) lost;
  {
    const std::lock_guard lock(mutex_);
    lost.swap(lost_at_start_);
  }
  lost.clear();
  if (!actor_host_->wait_until_idle(until)) return false;
  actor_host_.reset();
  options_.executor->pool().trim();
  life_ = Life::ended;
  return true;
}

std::size_t WorkerCore::count_rest() const {
  const AutogradCounts counts = autograd_->counts();
  const std::size_t rest =
      rrefs_.owners() + rrefs_.users() + counts.contexts + counts.jobs + actor_host_->busy_actors();
  const std::lock_guard lock(mutex_);
  return rest + sessions_.size();
}

}  // namespace caftan::actors
