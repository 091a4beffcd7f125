#include "sim/partition_seat.hpp"

#include <algorithm>
#include <filesystem>

#include <caf/actor_cast.hpp>
#include <caf/make_message.hpp>

#include "caftan/actors/worker.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/sim/internal/layout.hpp"
#include "caftan/wire/checkpoint_file.hpp"

namespace caftan::actors {
namespace {

constexpr std::size_t kRecordsOfPage = 20'000;
constexpr std::size_t kHashesOfPage = 500'000;
constexpr std::size_t kStatisticsOfPage = 20'000;

sim::Sync sync_of(sim::SyncChoice sync) {
  return sync == sim::SyncChoice::window ? sim::Sync::window : sim::Sync::null_message;
}

/// Returns how large an event may be so that a part of a frame, which it may end, fits into a message.
std::uint64_t largest_event(std::uint64_t message) {
  constexpr std::uint64_t kBeside = sim::FrameWriter::kPart + 64 * 1024;
  return message > 2 * kBeside ? message - kBeside : message / 4;
}

Result<PartitionSeat::Member> find_member(MemberPorts& ports, const Peer& peer) {
  if (peer.name() == ports.name()) return PartitionSeat::Member{peer.name(), ports.life()};
  const auto session = ports.session_of(peer);
  if (!session) return Error(Errc::peer_down, ports.name(), peer.name() + " is lost");
  return PartitionSeat::Member{peer.name(), session->peer().life};
}

/// Marks the running job as one that keeps the turn of its object: a call that comes back to it is would_deadlock.
class HeldTurn {
 public:
  HeldTurn(const rpc::Strand& strand, const std::string& name) : over_(std::make_shared<std::atomic<bool>>(false)) {
    Ambient& ambient = Ambient::of_thread();
    ambient.held = rpc::with_held(ambient.held, {strand.object(), name, over_});
  }
  ~HeldTurn() { over_->store(true, std::memory_order_release); }
  HeldTurn(const HeldTurn&) = delete;
  HeldTurn& operator=(const HeldTurn&) = delete;

 private:
  const std::shared_ptr<std::atomic<bool>> over_;
};

}  // namespace

// ---- making one

Result<std::shared_ptr<PartitionSeat>> PartitionSeat::open(
    Worker& worker, const CallInfo& info, const sim::OpenRequest& request, const sim::PartitionCalls::Build& build,
    std::weak_ptr<void> keep, std::function<void(const std::string&)> log, sim::OpenReply& reply) {
  MemberPorts& ports = MemberPorts::of(worker);
  const auto table = simulations_of(ports);
  if (!table) return table.error();
  if (request.index >= request.members.size() || request.members[request.index] != ports.name())
    return Error(Errc::bad_arguments, ports.name(), "the partition is not one of this simulation");
  Parts parts{.ports = ports,
              .table = *table,
              .request = request,
              .members = {},
              .clock = {},
              .strand = rpc::Strand::held_here(),
              .role = std::string(info.function.substr(0, info.function.rfind('.'))),
              .keep = std::move(keep),
              .log = std::move(log)};
  for (const std::string& name : request.members) {
    const Result<Peer> peer = ports.find_peer(name);
    if (!peer) return peer.error();
    Result<Member> member = find_member(ports, *peer);
    if (!member) return member.error();
    parts.members.push_back(*std::move(member));
  }
  Result<Member> clock = find_member(ports, info.caller);
  if (!clock) return clock.error();
  parts.clock = *std::move(clock);
  auto seat = std::make_shared<PartitionSeat>(std::move(parts));
  if (auto made = seat->make(build, reply); !made) return made.error();
  return seat;
}

Result<void> PartitionSeat::make(const sim::PartitionCalls::Build& build, sim::OpenReply& reply) {
  const sim::OpenRequest& request = parts_.request;
  MemberPorts& ports = parts_.ports;
  const auto session = ports.session_with(ports.life());
  sim::KernelOptions options{.seed = request.seed, .events = request.events, .records = request.records};
  if (session) options.largest_event = largest_event(session->limits().message);
  if (PartitionWatch::is_wanted(request)) {
    watch_.emplace(request, parts_.log);
    if (auto opened = watch_->open(request); !opened) return opened;
    options.watch = &*watch_;
  }
  auto made = sim::make_kernel(build, options, request.index, static_cast<std::uint32_t>(request.members.size()));
  if (!made) return made.error();
  sim::Kernel& kernel = **made;
  const sim::Layout& layout = kernel.layout();
  if (watch_) watch_->look_at(layout);
  if (auto loaded = load(kernel); !loaded) return loaded;
  reply.processes = layout.size();
  reply.own = layout.first_of(request.index + 1) - layout.first_of(request.index);
  reply.groups = layout.groups();
  reply.digest = layout.digest();
  reply.lookahead = layout.lookahead();
  reply.border = kernel.bound();
  reply.handled = kernel.counters().handled;
  if (request.index == 0) reply.warnings = layout.warnings();
  sim::FrameSink& sink = *this;
  partition_ = std::make_unique<sim::Partition>(request.simulation, *std::move(made), sync_of(request.sync), sink);
  const SimulationTable::Key key{request.simulation, request.index};
  caf::actor actor = ports.actor_host().spawn(sim_partition_actor, key.first, key.second,
                                              std::shared_ptr<SimPartitionPorts>(shared_from_this()));
  {
    const base::LockGuard lock(mutex_);
    actor_ = actor;
    others_.resize(parts_.members.size());
    heard_.resize(parts_.members.size());
    reached_ = reply.border;
  }
  return parts_.table->add(key, shared_from_this(), std::move(actor));
}

Result<void> PartitionSeat::load(sim::Kernel& kernel) const {
  for (const std::string& path : parts_.request.checkpoint) {
    const auto file = wire::read_checkpoint_file(path, kPartitionKind);
    if (!file) return file.error();
    if (auto loaded = kernel.load(*file); !loaded) {
      return Error(loaded.error().code(), path + ": " + loaded.error().text());
    }
  }
  return {};
}

// ---- what comes

void PartitionSeat::take_frame(const WorkerLife& from, wire::Bytes frame) {
  const auto member = std::ranges::find(parts_.members, from, &Member::life);
  if (member == parts_.members.end())
    return fail(Error(Errc::malformed_payload, "a frame came from a worker that has no partition of this simulation"));
  const base::LockGuard lock(mutex_);
  if (failure_ || is_closed_) return;
  inbox_.frames.emplace_back(static_cast<std::uint32_t>(member - parts_.members.begin()), std::move(frame));
  schedule();
}

Future<sim::BorderReply> PartitionSeat::advance(const sim::AdvanceRequest& request) {
  const base::LockGuard lock(mutex_);
  if (failure_) return make_ready_future<sim::BorderReply>(*failure_);
  if (promise_)
    return make_ready_future<sim::BorderReply>(
        Error(Errc::bad_arguments, "the partition is on its way to a border already: one clock at a time"));
  promise_.emplace(parts_.ports.weak_from_this());
  Future<sim::BorderReply> reply = promise_->future();
  inbox_.request = request;
  schedule();
  return reply;
}

std::string PartitionSeat::how_far() const {
  return "; this partition has handled all events before " + to_string(reached_);
}

/// SM-14
Error PartitionSeat::lost(const Member& member) const {
  const auto found = std::ranges::find(parts_.members, member.life, &Member::life);
  std::string text = member.name + " is lost";
  if (found != parts_.members.end()) {
    text += " at virtual time " + to_string(heard_[static_cast<std::size_t>(found - parts_.members.begin())]);
  }
  return {Errc::peer_down, parts_.ports.name(), text + how_far()};
}

void PartitionSeat::on_lost(const WorkerLife& peer) {
  std::optional<Error> error;
  {
    const base::LockGuard lock(mutex_);
    if (failure_ || is_closed_) return;
    const auto found = std::ranges::find(parts_.members, peer, &Member::life);
    if (found != parts_.members.end()) error = lost(*found);
    if (peer == parts_.clock.life) error = lost(parts_.clock);
  }
  if (!error) return;
  parts_.log(error->message());
  fail(*error);
}

void PartitionSeat::fail(const Error& error) {
  std::optional<Promise<sim::BorderReply>> promise;
  {
    const base::LockGuard lock(mutex_);
    if (failure_) return;
    failure_ = error;
    inbox_ = {};
    promise.swap(promise_);
  }
  if (promise) promise->set(error);
}

void PartitionSeat::end(const Error& reason) {
  log_unless_closed();
  shut(reason);
}

void PartitionSeat::shut(const Error& reason) {
  fail(reason);
  const base::LockGuard lock(mutex_);
  is_closed_ = true;
  actor_ = nullptr;
  others_.clear();
}

/// SM-14: the worker ends before its clock has closed the partition, and nothing was logged yet.
void PartitionSeat::log_unless_closed() {
  std::optional<Error> error;
  {
    const base::LockGuard lock(mutex_);
    if (!failure_ && !is_closed_) {
      const std::optional<Error> leaving = parts_.ports.leaving();
      const Error* const why = leaving ? leaving->cause() : nullptr;
      error =
          Error(Errc::shut_down, parts_.ports.name(),
                "the simulation ends before its clock has closed it; this partition has handled all events before " +
                    to_string(reached_),
                why ? std::make_shared<const Error>(*why) : nullptr);
    }
  }
  if (error) parts_.log(error->message());
}

void PartitionSeat::abandon() {
  log_unless_closed();
  close();
}

void PartitionSeat::close() {
  parts_.table->remove({parts_.request.simulation, parts_.request.index});
  shut(Error(Errc::shut_down, "the simulation is over"));
}

// ---- jobs on the strand

void PartitionSeat::schedule() {
  if (std::exchange(is_scheduled_, true)) return;
  // Posted while a frame is read, the job wakes no runner: the one that has read the frame runs it next.
  parts_.ports.executor().post([self = shared_from_this()] {
    const std::shared_ptr<rpc::Strand> strand = self->parts_.strand;
    strand->run([self] { self->run_job(); }, TurnMode::exclusive);
  });
}

void PartitionSeat::run_job() {
  const auto job = SimulationTable::begin_job(parts_.table);
  // A worker that is about to end has no object, and nothing of the partition goes on.
  const std::shared_ptr<void> keep = parts_.keep.lock();
  if (!job || !keep) return;
  const HeldTurn held(*parts_.strand, parts_.role);
  while (true) {
    Inbox inbox;
    {
      const base::LockGuard lock(mutex_);
      const bool may_start = has_started_ || inbox_.request;
      if (failure_ || is_closed_ || !may_start || (inbox_.frames.empty() && !inbox_.request)) {
        is_scheduled_ = false;
        return;
      }
      std::swap(inbox, inbox_);
    }
    if (auto done = handle(inbox); !done) fail(done.error().at(parts_.ports.name()));
  }
}

Result<void> PartitionSeat::handle(Inbox& inbox) {
  const base::Clock& clock = parts_.ports.executor().clock();
  const base::TimePoint begin_time = clock.now();
  if (spent_.waits_since) spent_.waiting += begin_time - *std::exchange(spent_.waits_since, std::nullopt);
  if (inbox.request) {
    if (auto done = begin(*inbox.request); !done) return done;
  }
  for (const auto& [from, frame] : inbox.frames) {
    if (auto done = partition_->on_frame(frame, from); !done) return done;
  }
  if (auto done = partition_->advance(); !done) return done;
  const base::TimePoint end_time = clock.now();
  spent_.busy += end_time - begin_time;
  if (not_sent_) return *not_sent_;
  const bool is_there = partition_->is_at_border();
  if (!is_there) spent_.waits_since = end_time;
  {
    const base::LockGuard lock(mutex_);
    reached_ = partition_->kernel().bound();
    for (std::uint32_t other = 0; other < heard_.size(); ++other) heard_[other] = partition_->heard_of(other);
    if (!is_there || !promise_) return {};
  }
  return report();
}

Result<void> PartitionSeat::begin(const sim::AdvanceRequest& request) {
  request_ = request;
  results_.hashes.clear();
  results_.statistics.clear();
  if (!std::exchange(has_started_, true)) {
    auto done = parts_.request.checkpoint.empty() ? partition_->start() : partition_->resume();
    if (!done) return done;
  }
  return partition_->grant(request.border);
}

/// The border is reached.
Result<void> PartitionSeat::report() {
  sim::Kernel& kernel = partition_->kernel();
  const sim::BorderReport report = partition_->report();
  if (request_.ends_warmup) kernel.reset_statistics(report.border);
  if (watch_) {
    if (auto written = watch_->flush(); !written) return written;
  }
  sim::BorderReply reply;
  if (request_.wants_hash) {
    const auto hashes = kernel.hashes();
    if (!hashes) return hashes.error();
    std::uint64_t id = kernel.layout().first_of(kernel.partition());
    // A sum does not depend on which partition adds what.
    for (const std::uint64_t hash : *hashes) reply.hash += mix64(hash + mix64(++id));
  }
  Result<wire::Bytes> encoded = wire::encode(report);
  if (!encoded) return encoded.error();
  reply.report = *std::move(encoded);
  reply.busy = spent_.busy.count();
  reply.waiting = spent_.waiting.count();
  results_.records = kernel.recorder().take();
  results_.records_sent = 0;
  sim::RecordsPage page = records();
  reply.records = std::move(page.records);
  reply.has_more = page.has_more;
  reply.missing = kernel.recorder().missing();
  std::optional<Promise<sim::BorderReply>> promise;
  {
    const base::LockGuard lock(mutex_);
    promise.swap(promise_);
  }
  if (promise) promise->set(std::move(reply));
  return {};
}

void PartitionSeat::send(std::uint32_t partition, wire::Bytes frame) {
  caf::actor self;
  caf::strong_actor_ptr other;
  {
    const base::LockGuard lock(mutex_);
    if (is_closed_ || failure_) return;
    self = actor_;
    caf::strong_actor_ptr& known = others_[partition];
    if (!known) {
      const auto session = parts_.ports.session_with(parts_.members[partition].life);
      if (!session) return;  // on_lost follows
      known = remote::ActorExchange::of(*session).proxy(
          remote::Address::sim_partition(parts_.request.simulation, partition));
    }
    other = known;
  }
  // It leaves at once: the next window may begin in this turn, while the other partition waits for the frame.
  const auto sent = remote::ActorExchange::send(other, caf::actor_cast<caf::strong_actor_ptr>(self),
                                                caf::make_message(SimFrame{std::move(frame)}), std::nullopt);
  // A peer that is down is reported once its session has ended.
  if (!sent && sent.error().code() != Errc::peer_down) not_sent_ = sent.error();
}

// ---- the other calls

sim::RecordsPage PartitionSeat::records() {
  const std::size_t end = std::min(results_.records.size(), results_.records_sent + kRecordsOfPage);
  sim::RecordsPage page;
  page.records.assign(results_.records.begin() + static_cast<std::ptrdiff_t>(results_.records_sent),
                      results_.records.begin() + static_cast<std::ptrdiff_t>(end));
  results_.records_sent = end;
  page.has_more = end < results_.records.size();
  if (!page.has_more) results_.records.clear(), results_.records_sent = 0;
  return page;
}

Result<void> PartitionSeat::save(const std::string& folder) {
  const auto file = partition_->kernel().save();
  if (!file) return file.error();
  const std::filesystem::path path =
      std::filesystem::path(folder) / ("partition-" + std::to_string(parts_.request.index));
  return wire::write_checkpoint_file(path, *file);
}

Result<sim::ResultsPage> PartitionSeat::results(std::uint64_t next_hash, std::uint64_t next_statistic) {
  if (results_.hashes.empty()) {
    auto hashes = partition_->kernel().hashes();
    if (!hashes) return hashes.error();
    results_.hashes = *std::move(hashes);
    results_.statistics = partition_->kernel().statistics(partition_->report().border);
  }
  const auto take = [](auto& page, const auto& all, std::uint64_t from, std::size_t most, std::uint64_t& next) {
    const std::size_t begin = std::min<std::size_t>(from, all.size());
    const std::size_t end = std::min(all.size(), begin + most);
    page.assign(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
    next = end;
    return end < all.size();
  };
  sim::ResultsPage page;
  const bool more_hashes = take(page.hashes, results_.hashes, next_hash, kHashesOfPage, page.next_hash);
  const bool more_statistics =
      take(page.statistics, results_.statistics, next_statistic, kStatisticsOfPage, page.next_statistic);
  page.has_more = more_hashes || more_statistics;
  return page;
}

}  // namespace caftan::actors
