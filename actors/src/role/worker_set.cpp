#include "role/worker_set.hpp"

#include <algorithm>
#include <optional>

#include "caftan/app/internal/permissions.hpp"
#include "caftan/app/internal/run_directory.hpp"
#include "caftan/app/internal/settings_digest.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "caftan/wire/frame.hpp"
#include "role/shared_memory_limit.hpp"
#include "worker/worker_core.hpp"

namespace caftan::actors {

namespace {

constexpr net::Limits limits_of(const app::LimitsSettings& settings) {
  net::Limits limits;
  limits.message = static_cast<std::uint64_t>(settings.message.bytes);
  limits.tensors = static_cast<std::uint64_t>(settings.tensors.bytes);
  limits.send_queue = static_cast<std::uint64_t>(settings.send_queue.bytes);
  limits.pending_calls = static_cast<std::size_t>(settings.pending_calls);
  return limits;
}
static_assert(limits_of(app::LimitsSettings()) == net::Limits(), "a file without [limits] means the same as no file");

/// Returns how the workers of a run encrypt their connections.
TlsOptions tls_options(const app::Application& application, const app::Plan& plan) {
  TlsOptions options;
  options.mode = TlsOptions::Mode::off;
  const app::TlsUse use = app::tls_use(application);
  if (use == app::TlsUse::none || use == app::TlsUse::off) return options;
  options.mode = TlsOptions::Mode::on;
  if (use == app::TlsUse::secret) return options;
  options.certificate = application.tls.certificate.value_or("");
  options.key = application.tls.key.value_or("");
  options.authority = application.tls.authority.value_or("");
  for (const app::PlannedWorker& worker : plan.workers) {
    const auto host = std::ranges::find(application.hosts, worker.host, &app::HostSpec::name);
    if (host == application.hosts.end()) continue;
    options.also_named[worker.name] = {host->name};
    // Empty where the address is learnt: of slots, and with hosts.NAME.interface.
    if (!host->address.empty()) options.also_named[worker.name].push_back(host->address);
  }
  return options;
}

}  // namespace

WorkerSet::WorkerSet(WorkerSetOptions options) : options_(std::move(options)) {
  for (const WorkerId id : options_.workers) {
    Member member;
    member.id = id;
    member.reporter = std::make_shared<RunReporter>(options_.sink, id.value, *options_.executor);
    members_.push_back(std::move(member));
  }
}

WorkerSet::~WorkerSet() {
  if (phase() != Phase::ended) end();
  if (stopper_) stopper_->join();
}

RoleFacts WorkerSet::facts_of(const app::PlannedWorker& planned) const {
  const app::Application& application = options_.application;
  RoleFacts facts{.worker = planned.name,
                  .role = planned.role,
                  .replica = planned.replica,
                  .replicas = application.find_role(planned.role)->keys.replicas,
                  .root_seed = static_cast<std::uint64_t>(application.run.seed),
                  .deterministic = application.run.deterministic,
                  .output_directory = options_.run_directory};
  for (const app::PlannedUse& use : planned.uses) {
    auto& names = facts.uses[use.name];
    for (const WorkerId id : use.workers) names.push_back(options_.plan.workers[id.value].name);
    const auto may_be_lost = [this](WorkerId id) { return options_.plan.workers[id.value].may_be_lost; };
    if (std::all_of(use.workers.begin(), use.workers.end(), may_be_lost)) facts.may_be_lost.insert(use.name);
  }
  return facts;
}

PlayedRole WorkerSet::played_by(const app::PlannedWorker& planned) const {
  const app::Application& application = options_.application;
  const auto config_of = [&application](const app::PlannedWorker& worker) {
    return &application.find_role(worker.role)->config_of(worker.replica);
  };
  PlayedRole played{.type = planned.type, .config = config_of(planned)};
  played.place.role = planned.role;
  played.place.root_seed = static_cast<std::uint64_t>(application.run.seed);
  played.place.deterministic = application.run.deterministic;
  for (const app::PlannedUse& use : planned.uses) {
    auto& configs = played.place.uses[use.name];
    for (const WorkerId id : use.workers) configs.push_back(config_of(options_.plan.workers[id.value]));
  }
  return played;
}

/// Returns the names of the driving workers of other launchers (RN-21).
std::vector<std::string> WorkerSet::drivers_elsewhere() const {
  std::vector<std::string> names;
  if (options_.network) return names;  // with a network all workers are in this process
  for (const app::PlannedWorker& worker : options_.plan.workers) {
    const bool is_elsewhere = std::ranges::find(options_.siblings, worker.name) == options_.siblings.end();
    if (worker.drives && is_elsewhere) names.push_back(worker.name);
  }
  return names;
}

WorkerOptions WorkerSet::worker_options(Member& member) {
  const app::Application& application = options_.application;
  WorkerOptions options;
  options.name = options_.plan.workers[member.id.value].name;
  options.world = options_.members;
  options.cluster = application.run.name;
  options.secret = options_.secret;
  options.tls = tls_options(application, options_.plan);
  options.limits = limits_of(application.limits);
  const app::PlannedWorker& self = options_.plan.workers[member.id.value];
  const auto here = std::ranges::count(options_.plan.workers, self.host, &app::PlannedWorker::host);
  const std::optional<ByteSize>& shared = application.limits.shared_memory;
  options.limits.shared_memory =
      shared ? static_cast<std::uint64_t>(shared->bytes) : default_shared_memory(static_cast<std::size_t>(here));
  options.limits.shm_ring = static_cast<std::uint64_t>(application.cluster.shm_ring.bytes);
  options.rpc_timeout = application.cluster.rpc_timeout;
  options.start_timeout = application.run.start_timeout;
  options.stop_timeout = application.run.stop_timeout / 2;
  options.heartbeat = application.cluster.heartbeat;
  options.peer_timeout = run::kBeatsUntilLost * application.cluster.heartbeat;
  options.executor = options_.executor;
  options.network = options_.network;
  options.role = member.role;
  options.log = [log = member.log.in("worker")](std::string_view line) { log.info(line); };
  options.on_peer_down = [reporter = member.reporter](const std::string& peer, const Error& reason) {
    reporter->send(run::PeerLost{peer, reason});
  };
  options.on_peer_returned = [reporter = member.reporter](const std::string& peer) {
    reporter->send(run::PeerReturned{peer});
  };
  options.on_refused = [reporter = member.reporter](const Error& reason) { reporter->send(run::Refused{reason}); };
  options.on_duplicate = [reporter = member.reporter](const Error& reason) { reporter->send(run::Duplicate{reason}); };
  if (const auto types = options_.catalog.types()) options.settings = app::settings_digest(application, *types);
  return options;
}

Result<void> WorkerSet::launch(Member& member) {
  const app::PlannedWorker& planned = options_.plan.workers[member.id.value];
  if (!options_.run_directory.empty()) {
    const auto directory = app::RunDirectory::open(options_.run_directory);
    if (!directory) return directory.error();
    const bool to_output = options_.logs_to_output;
    auto log = Log::open({.worker = planned.name,
                          .to_stderr = to_output,
                          .file = to_output ? std::filesystem::path() : directory->log_file(planned.name)});
    if (!log) return log.error();
    member.log = *std::move(log);
    const std::string shared = app::shared_cores_text(options_.plan, planned, options_.cores);
    if (!shared.empty()) member.log.in("worker").info(shared);
    if (!options_.own_cores.empty()) member.log.in("worker").info(options_.own_cores);
    if (!options_.spin.empty()) member.log.in("worker").info("spin " + options_.spin);
  }
  const RoleDefinition* const definition = options_.catalog.find(planned.type);
  if (!definition) return Error(Errc::invalid_config, "no role type '" + planned.type + "' in this program");
  auto state = std::make_shared<RoleState>();
  state->facts = facts_of(planned);
  // A use that the file leaves out has no workers.
  for (const RoleDefinition::Use& use : definition->uses) state->facts.uses.try_emplace(use.name);
  state->reporter = member.reporter;
  state->environments = options_.catalog.environments();
  state->log = member.log.in("role");
  state->drivers_elsewhere = drivers_elsewhere();
  member.role = std::make_shared<RoleHost>(
      *definition, options_.application.find_role(planned.role)->config_of(planned.replica), state);
  Registry registry = options_.catalog.make_registry(played_by(planned));
  const app::RoleSpec& role = *options_.application.find_role(planned.role);
  for (const app::RoleSpec::Script& script : role.scripts) registry.add_script(script.name, script.file);
  for (const app::RoleSpec::Script& module : role.modules) registry.add_script_module(module.name, module.file);
  registry.permit(app::permissions_at(options_.application, options_.plan, planned));
  auto worker = Worker::launch(worker_options(member), std::move(registry));
  if (!worker) return worker.error();
  member.worker = *std::move(worker);
  WorkerCore::of(*member.worker).joiner().set_siblings(options_.siblings);
  state->caller = member.worker->caller();
  member.role->attach(*member.worker);
  member.reporter->send(run::Here{member.worker->address()});
  return {};
}

/// Starts the workers and waits until they are ready. An error that this function returns is in the log and in the
/// run's reports already.
Result<void> WorkerSet::join() {
  for (Member& member : members_) {
    auto done = launch(member);
    if (!done) {
      const std::string& name = options_.plan.workers[member.id.value].name;
      member.log.error("start: " + done.error().message());
      member.reporter->send(run::Failed{done.error().at(name)});
      return done;
    }
  }
  for (Member& member : members_) {
    if (auto ready = member.worker->wait_until_ready(); !ready) {
      member.log.error("start: " + ready.error().message());
      member.reporter->send(run::Failed{ready.error().at(member.worker->name())});
      return ready;
    }
  }
  return {};
}

bool WorkerSet::run() {
  if (join()) {
    {
      // The phase is set before a worker reports ready, because the launcher may reply with the command to leave at
      // once.
      const base::LockGuard lock(mutex_);
      phase_ = Phase::joined;
    }
    for (Member& member : members_) member.reporter->send(run::Ready{});
    const base::LockGuard lock(mutex_);
    for (Member& member : members_) {
      if (asked_ != Asked::nothing) member.role->request_stop();  // it has no code yet
      member.role->begin();
    }
  }
  wait_for_leave();
  if (!end()) return false;
  for (Member& member : members_) member.reporter->send(run::Left{});
  return true;
}

void WorkerSet::stop() {
  const base::LockGuard lock(mutex_);
  if (asked_ != Asked::nothing) return;
  asked_ = Asked::stop;
  if (phase_ != Phase::joined) return;
  // stop_callbacks run on a thread of their own, because all runners may be busy with roles that only wait to be asked
  // to stop.
  requesting_stops_ = true;
  if (auto thread = transport::Thread::make([this] { request_stops(); })) {
    stopper_.emplace(*std::move(thread));
  } else {
    options_.executor->post([this] { request_stops(); });
  }
}

/// The stop_callbacks of roles run here.
void WorkerSet::request_stops() {
  for (Member& member : members_) member.role->request_stop();
  const base::LockGuard lock(mutex_);
  requesting_stops_ = false;
  changed_.notify_all();
}

/// Waits until no code of a role runs any more. Returns a member whose role still runs code at the deadline; null if
/// there is none.
WorkerSet::Member* WorkerSet::wait_for_roles(base::TimePoint deadline) {
  for (Member& member : members_) {
    if (member.role && !member.role->wait_until_idle(deadline)) return &member;
  }
  base::UniqueLock lock(mutex_);
  const bool done = changed_.wait_until(lock.native(), deadline, [this] {
    mutex_.assert_held();
    return !requesting_stops_;
  });
  return done ? nullptr : &members_.front();
}

void WorkerSet::leave(const Error& reason) {
  stop();
  const base::LockGuard lock(mutex_);
  if (asked_ != Asked::leave) farewell_ = reason;
  asked_ = Asked::leave;
  changed_.notify_all();
}

bool WorkerSet::has_joined() const { return phase() != Phase::joining; }

WorkerSet::Phase WorkerSet::phase() const {
  const base::LockGuard lock(mutex_);
  return phase_;
}

void WorkerSet::wait_for_leave() {
  base::UniqueLock lock(mutex_);
  changed_.wait(lock.native(), [this] {
    mutex_.assert_held();
    return asked_ == Asked::leave;
  });
}

/// Reports how many frames and bytes the workers have sent until all roles had returned, which with `run.deterministic`
/// is the same in every placement. Good-byes do not count: which worker says the first one depends on timing.
void WorkerSet::report_traffic(base::TimePoint deadline) {
  for (Member& member : members_) {
    if (member.worker) (void)WorkerCore::of(*member.worker).wait_until_quiet(deadline);
  }
  for (Member& member : members_) {
    if (!member.worker) continue;
    auto sent = member.worker->traffic();
    std::erase_if(sent, [](const SentFrames& of) { return of.kind == wire::name_of(wire::FrameKind::bye); });
    member.reporter->send(run::Traffic{std::move(sent)});
  }
}

Error WorkerSet::farewell_of(const Member& member) const {
  const base::LockGuard lock(mutex_);
  return farewell_.code() == Errc::ok ? Error() : farewell_.at(member.worker->name());
}

bool WorkerSet::end() {
  const base::Duration most = options_.application.run.stop_timeout / 2;
  const base::TimePoint deadline = base::SteadyClock().now() + most;
  Member* late = wait_for_roles(deadline - most / 2);
  if (late) {
    for (Member& member : members_) {
      if (member.worker) WorkerCore::of(*member.worker).joiner().leave_other_hosts(farewell_of(member));  // RN-12
    }
    late = wait_for_roles(deadline);
  }
  if (late) {
    late->log.error("run() or a stop_callback of the role has not returned in time");
    return false;
  }
  {
    const base::LockGuard lock(mutex_);
    phase_ = Phase::ended;
  }
  report_traffic(deadline);
  // A call that finds the object of a role ended here says that this worker has left, and why.
  for (Member& member : members_) {
    if (member.worker) WorkerCore::of(*member.worker).begin_leaving(farewell_of(member));
  }
  for (Member& member : members_) {
    if (member.role) member.role->end();
  }
  bool ended = true;
  for (Member& member : members_) {
    if (!member.worker) continue;
    if (member.worker->stop().in_use == 0) continue;
    member.log.error("code on a runner that uses connections, references, contexts or passes has not returned in time");
    ended = false;
  }
  return ended;
}

}  // namespace caftan::actors
