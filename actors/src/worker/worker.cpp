#include "caftan/actors/worker.hpp"

#include "autograd/autograd_host.hpp"
#include "caftan/transport/internal/spin_budget.hpp"
#include "worker/runners.hpp"
#include "worker/worker_core.hpp"
#include "worker/worker_options.hpp"

namespace caftan {

actors::MemberPorts& actors::MemberPorts::of(Worker& worker) noexcept { return WorkerCore::of(worker); }

Worker::Worker(std::shared_ptr<transport::PollingExecutor> executor, std::shared_ptr<actors::WorkerCore> core)
    : CallSite(core), executor_(std::move(executor)), core_(std::move(core)), caller_(core_) {
  core_->set_worker(this);
}

Result<std::unique_ptr<Worker>> Worker::launch(WorkerOptions options, Registry registry) {
  // The core only borrows the executor. If it owned the executor, the last reference might be dropped on a runner, and
  // a runner cannot join itself.
  std::shared_ptr<transport::PollingExecutor> executor = std::move(options.executor);
  actors::warm_up_vector_math();  // done before any call can run, also on runners that the user made
  if (!executor) {
    // Any member may be on this host.
    const auto spin = transport::spin_budget(transport::read_cores(), options.world.size());
    executor = actors::make_runners(1, spin.options);
  }
  options.executor = {std::shared_ptr<void>(), executor.get()};
  // Decided once and here: an address may hold a name, and no runner waits for the name service (SE-39).
  options.tls.mode = actors::uses_tls(options) ? TlsOptions::Mode::on : TlsOptions::Mode::off;
  auto core = actors::WorkerCore::make(std::move(options), std::move(registry));
  if (!core) return core.error();
  std::unique_ptr<Worker> worker(new Worker(std::move(executor), *core));
  if (auto launched = (*core)->launch(); !launched) return launched.error();
  return worker;
}

Result<std::unique_ptr<Worker>> Worker::start(WorkerOptions options, Registry registry) {
  auto worker = launch(std::move(options), std::move(registry));
  if (!worker) return worker;
  if (auto ready = (*worker)->wait_until_ready(); !ready) return ready.error();
  return worker;
}

Result<void> Worker::wait_until_ready() { return core_->joiner().wait_until_ready(); }

Worker::~Worker() { core_->end(); }

Result<void> Worker::leave_together(base::Duration timeout) { return core_->joiner().leaver().leave_together(timeout); }

StopReport Worker::stop() { return core_->stop(); }

Result<void> Worker::set_rpc_timeout(base::Duration timeout) {
  if (timeout < base::Duration::zero()) {
    return Error(Errc::bad_arguments, name(), "rpc_timeout is negative; 0 means that calls have no time-out");
  }
  core_->set_rpc_timeout(timeout);
  return {};
}

WorkerId Worker::id() const noexcept { return core_->id(); }
const std::string& Worker::name() const noexcept { return core_->name(); }
std::string Worker::address() const { return core_->joiner().address(); }
std::string Worker::channel_kind(const std::string& peer) const { return core_->channel_kind(peer); }
std::string Worker::channel_note(const std::string& peer) const { return core_->channel_note(peer); }
std::vector<RRefInfo> Worker::rrefs() const { return core_->rref_host().list(); }
std::vector<autograd::ContextInfo> Worker::autograd_contexts() const { return core_->autograd_host().list(); }
WorkerCounters Worker::counters() const { return core_->counters(); }
std::vector<SentFrames> Worker::traffic() const { return core_->traffic(); }

}  // namespace caftan
