#include "worker/worker_core.hpp"

#include <algorithm>
#include <utility>

#include "autograd/autograd_host.hpp"
#include "caftan/autograd/internal/recording_hook.hpp"
#include "caftan/base/fnv1a.hpp"
#include "caftan/nn/internal/script_creation.hpp"
#include "worker/root_actor.hpp"
#include "worker/services.hpp"
#include "worker/worker_options.hpp"

namespace caftan::actors {

using transport::Session;

namespace {

/// How long it may take until what stop() ends at its deadline is over.
constexpr base::Duration kStopGrace = std::chrono::seconds(1);

std::vector<Service*> list_services(RRefHost& rrefs, AutogradHost& autograd, Gatherer& gatherer,
                                    const std::vector<std::unique_ptr<Service>>& others) {
  std::vector<Service*> services{&rrefs, &autograd, &gatherer};
  for (const auto& service : others) services.push_back(service.get());
  return services;
}

}  // namespace

Result<std::shared_ptr<WorkerCore>> WorkerCore::make(WorkerOptions options, Registry registry) {
  auto membership = make_membership(options);
  if (!membership) return membership.error();
  std::shared_ptr<WorkerCore> core(new WorkerCore(std::move(options), std::move(registry), *std::move(membership)));
  if (auto frozen = core->registry_.freeze(); !frozen) return frozen.error();
  if (auto checked = core->check_permissions(); !checked) return checked.error();
  return core;
}

WorkerCore::WorkerCore(WorkerOptions options, Registry registry, net::Membership membership)
    : options_(std::move(options)),
      registry_(std::move(registry)),
      rpc_timeout_(options_.rpc_timeout),
      self_{membership.self().id, membership.self().incarnation},
      log_(std::make_shared<WorkerLog>(options_.log, *options_.executor)),
      rrefs_(*this),
      autograd_(std::make_unique<AutogradHost>(*this, self_)),
      peers_(self_.id, options_.world),
      gatherer_(*this, peers_),
      other_services_(make_services()),
      services_(list_services(rrefs_, *autograd_, gatherer_, other_services_)),
      hook_(std::make_unique<autograd::RecordingHook>(*autograd_, options_.hook)),
      joiner_({*this, options_, peers_, *this, services_, *log_, *this}, std::move(membership)),
      outgoing_({*this, options_, peers_, joiner_, rrefs_}),
      served_(*this, options_.limits, rrefs_, *log_) {
  messages_.add<net::View>("membership.view");
  messages_.add<net::Met>("membership.met");
  messages_.add<net::LeaveReport>("leave.report");
  messages_.add<net::RunReturned>("run.returned");
  const std::vector<const rpc::FunctionEntry*> own = registry_.entries();
  for (Service* service : services_) service->register_with(registry_, messages_);
  if (registry_.permissions()) apply_permissions(own);
  actor_host_ = std::make_unique<remote::ActorHost>(*options_.executor, messages_, self_);
  actor_host_->set_named_actors(this);
}

WorkerCore::~WorkerCore() = default;

void WorkerCore::apply_permissions(std::vector<const rpc::FunctionEntry*> own) {
  // This function of a service makes something of a name alone, as functions of users do.
  const std::string makes_module(nn::kMakeScriptModule.name());
  own.push_back(registry_.find(base::fnv1a(makes_module), makes_module));
  const rpc::PermissionTable& table =
      peers_.permit(registry_, std::move(own), [log = log_](const std::string& line) { log->write(line); });
  rrefs_.set_permissions(table);
  served_.set_permissions(table);
}

/// Checks rules that a user has made; those of a file were checked when that was read.
Result<void> WorkerCore::check_permissions() const {
  if (!registry_.permissions() || options_.role) return {};
  return rpc::check_permissions(*registry_.permissions(), peers_.names(), registry_);
}

Result<void> WorkerCore::launch() {
  return joiner_.launch(actor_host_->spawn(root_actor, &joiner_, &joiner_.leaver(), &rrefs_));
}

// ---- looking

std::shared_ptr<Session> WorkerCore::session_with(const std::string& peer) const {
  const auto found = peers_.find(peer);
  return found ? PeerState::of(*found).session() : nullptr;
}

std::string WorkerCore::channel_kind(const std::string& peer) const {
  const auto session = session_with(peer);
  return session ? session->channel_kind() : "";
}

std::string WorkerCore::channel_note(const std::string& peer) const {
  const auto session = session_with(peer);
  return session ? session->channel_note() : "";
}

WorkerCounters WorkerCore::counters() const {
  WorkerCounters sum;
  peers_.count(sum);
  sum.calls_served = served_.count();
  sum.tells_lost = outgoing_.tells_lost();
  sum.owner_rrefs = rrefs_.table().owners();
  sum.user_rrefs = rrefs_.table().users();
  return sum;
}

std::vector<SentFrames> WorkerCore::traffic() const {
  const net::Traffic sum = peers_.traffic();
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

void WorkerCore::on_unobserved_error(std::string_view what, const Error& error) noexcept {
  const std::string about(what);
  log_->write_repeated(about + ": this error was never read: " + error.message(),
                       about + ": # more errors were never read in this second");
}

// ---- what sessions bring

Result<std::shared_ptr<void>> WorkerCore::on_manifest(Session& session, wire::FrameKind, wire::ByteView manifest) {
  auto received = rrefs_.on_manifest(session, manifest);
  if (!received) return received.error();
  return std::shared_ptr<void>(std::move(*received));
}

Result<void> WorkerCore::on_frame(const std::shared_ptr<Session>& session, wire::InFrame frame) {
  return served_.on_frame(session, std::move(frame));
}

void WorkerCore::on_tells_lost(Session& session, std::size_t count, const Error& reason) {
  outgoing_.on_tells_lost(session.peer().name, count, reason);
}

void WorkerCore::on_end(Session& session, const Error& reason) {
  served_.on_session_end(session);
  const net::Meeting::Loss loss = joiner_.on_session_end(session, reason);
  peers_.replace(session);
  for (Service* service : services_) service->on_session_end(session, loss.is_last);
  if (loss.is_last) hook_->on_peer_down(session.peer().life);
  joiner_.follow_up(session, reason, loss);
  peers_.remove(session);  // the last act on the session: stop() goes on when no session is left
}

caf::strong_actor_ptr WorkerCore::find_named(const Session& session, const remote::Address& name) {
  for (Service* service : services_) {
    if (auto actor = service->find_named(session, name)) return actor;
  }
  return nullptr;
}

caf::strong_actor_ptr WorkerCore::stand_in(const remote::Address& name) {
  for (Service* service : services_) {
    if (auto actor = service->stand_in(name)) return actor;
  }
  return nullptr;
}

// ---- leaving

bool WorkerCore::wait_until_idle(base::TimePoint deadline) {
  base::Executor& executor = *options_.executor;
  // Served calls make calls of their own, and a call of this worker to itself is a served call, too. So both kinds have
  // ended only if no served call is left after the last outgoing one.
  while (served_.gate().wait_until_empty(executor, deadline) && outgoing_.gate().wait_until_empty(executor, deadline)) {
    if (served_.gate().inside() == 0) return true;
  }
  return false;
}

bool WorkerCore::wait_until_quiet(base::TimePoint deadline) {
  const bool is_idle = wait_until_idle(deadline);
  return options_.executor->with_wait([&](base::Executor::Wait& wait) {
    rrefs_.ending().when_quiet([&] { wait.point().notify(); });
    const bool have_ended = wait.wait(deadline, nullptr);
    rrefs_.ending().when_quiet(nullptr);
    return is_idle && have_ended;
  });
}

std::uint64_t WorkerCore::work() const {
  using wire::FrameKind;
  const net::Traffic sent = peers_.traffic();
  std::uint64_t sum = 0;
  for (const FrameKind kind :
       {FrameKind::call, FrameKind::create, FrameKind::fetch, FrameKind::method, FrameKind::op, FrameKind::response}) {
    sum += sent.of(kind).frames;
  }
  return sum;
}

void WorkerCore::begin_leaving(Error farewell) {
  farewell_ = std::move(farewell);
  Phase running = Phase::running;
  (void)phase_.compare_exchange_strong(running, Phase::leaving);
}

std::optional<Error> WorkerCore::leaving() const {
  if (phase_ == Phase::running) return std::nullopt;
  auto cause = farewell_.code() == Errc::ok ? nullptr : std::make_shared<const Error>(farewell_);
  return Error(Errc::shut_down, name(), "this worker has left", std::move(cause));
}

StopReport WorkerCore::stop() {
  StopReport given_up;
  Phase phase = phase_.load();
  while (phase < Phase::draining && !phase_.compare_exchange_weak(phase, Phase::draining)) {
  }
  if (phase >= Phase::draining) return given_up;
  joiner_.leave();
  joiner_.leaver().stop(*leaving());
  outgoing_.gate().close();
  served_.begin_stop();
  const base::Clock& clock = options_.executor->clock();
  const base::TimePoint deadline = clock.now() + options_.stop_timeout;
  (void)wait_until_idle(deadline);
  log_->flush_repeated();
  given_up.calls = outgoing_.gate().inside();
  given_up.served_calls = served_.gate().inside();
  joiner_.stop_listening();
  end_services(given_up);
  close_sessions(deadline);
  if (!end_rest(clock.now() + kStopGrace)) {
    given_up.in_use = count_rest();
    log("stop: code on a runner still uses " + std::to_string(given_up.in_use) +
        " connections, references, contexts, passes or actors of this worker");
  }
  return given_up;
}

Result<void> WorkerCore::set_max_batch_size(const char* tag, std::size_t size) {
  const rpc::FunctionEntry* const function = registry_.find(tag);
  if (!function) return Error(Errc::unknown_function, name(), "the batched method is not registered at this worker");
  return served_.set_max_batch_size(*function, size);
}

void WorkerCore::end() {
  (void)stop();
  if (!has_ended()) (void)end_rest(base::kNever);
}

void WorkerCore::end_services(StopReport& given_up) {
  std::for_each(services_.rbegin(), services_.rend(),
                [&](Service* service) { service->end_all(*leaving(), given_up); });
}

void WorkerCore::close_sessions(base::TimePoint deadline) {
  const auto sessions = peers_.sessions();
  for (const auto& session : sessions) session->writer().close(farewell_);
  (void)peers_.wait_until_none(*options_.executor, deadline);
  for (const auto& session : sessions) session->abort(*leaving());
}

bool WorkerCore::end_rest(base::TimePoint until) {
  if (!peers_.wait_until_none(*options_.executor, until)) return false;
  // No frame arrives any more: the second call of end_services ends all that frames have brought since the first.
  StopReport known_already;
  end_services(known_already);
  const auto has_ended = [&](Service* service) {
    return options_.executor->with_wait([&](base::Executor::Wait& wait) {
      service->when_empty([&] { wait.point().notify(); });
      const bool ended = wait.wait(until, nullptr);
      service->when_empty(nullptr);
      return ended;
    });
  };
  if (!std::ranges::all_of(services_, has_ended)) return false;
  joiner_.close();
  peers_.forget_sessions();
  if (!actor_host_->wait_until_idle(until)) return false;
  actor_host_.reset();
  options_.executor->pool().trim();
  log_->close();
  phase_ = Phase::ended;
  return true;
}

std::size_t WorkerCore::count_rest() const {
  std::size_t rest = actor_host_->busy_actors() + peers_.session_count();
  for (const Service* service : services_) rest += service->in_use();
  return rest;
}

}  // namespace caftan::actors
