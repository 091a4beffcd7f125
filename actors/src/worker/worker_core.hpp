/// The inside of a Worker: makes the parts of one member, starts and ends them, and passes on what the libraries ask of
/// a worker (`rpc::Caller`), what services ask (`MemberPorts`) and what the transport brings (`FrameHandler`).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/remote/internal/actor_host.hpp"
#include "caftan/rpc/call_hook.hpp"
#include "rref/rref_host.hpp"
#include "service/member_ports.hpp"
#include "service/service.hpp"
#include "worker/gatherer.hpp"
#include "worker/joiner.hpp"
#include "worker/outgoing_calls.hpp"
#include "worker/peers.hpp"
#include "worker/served_calls.hpp"
#include "worker/worker_log.hpp"

namespace caftan::actors {

class AutogradHost;

class WorkerCore final : public MemberPorts,
                         private transport::FrameHandler,
                         private remote::NamedActors,
                         private WorkPorts {
 public:
  /// Precondition: options.executor is set; it outlives the core, which does not own it.
  static Result<std::shared_ptr<WorkerCore>> make(WorkerOptions options, Registry registry);
  static WorkerCore& of(Worker& worker) noexcept { return *worker.core_; }
  ~WorkerCore() override;

  Result<void> launch();
  /// Stops the worker and returns within stop_timeout and a second (architecture.md, "Life of a worker"), even if code
  /// on a runner still runs; `end` waits for that code, too.
  StopReport stop();
  void end();
  // For WorkPorts; the launcher waits with this function, too.
  bool wait_until_quiet(base::TimePoint deadline) override;
  /// Precondition: not negative.
  void set_rpc_timeout(base::Duration timeout) noexcept { rpc_timeout_.store(timeout, std::memory_order_relaxed); }
  void set_worker(Worker* worker) { worker_ = worker; }
  /// From now on a call that finds its object ended here fails with `leaving()`. stop() follows. Called at most once.
  /// @param farewell  the reason that stop() sends to the peers; Errc::ok = it leaves in good order
  void begin_leaving(Error farewell);

  const WorkerOptions& options() const noexcept { return options_; }
  std::string channel_kind(const std::string& peer) const;
  std::string channel_note(const std::string& peer) const;
  WorkerCounters counters() const;
  std::vector<SentFrames> traffic() const;
  Joiner& joiner() noexcept { return joiner_; }
  RRefHost& rref_host() noexcept { return rrefs_; }
  AutogradHost& autograd_host() noexcept { return *autograd_; }
  Gatherer& gatherer() noexcept { return gatherer_; }

  // rpc::Caller
  WorkerId id() const noexcept override { return self_.id; }
  const std::string& name() const noexcept override { return options_.name; }
  const Registry& registry() const noexcept override { return registry_; }
  base::Executor& executor() noexcept override { return *options_.executor; }
  rpc::CallHook* hook() noexcept override { return hook_.get(); }
  base::Duration default_timeout() const noexcept override { return rpc_timeout_.load(std::memory_order_relaxed); }
  Worker& worker() noexcept override { return *worker_; }
  Result<Peer> find_peer(std::string_view name) override { return peers_.find(name); }
  Result<Peer> find_peer(WorkerId id) override { return peers_.find(id); }
  bool knows(const rpc::PeerRecord& peer) const noexcept override { return peers_.knows(peer); }
  rpc::CallToken submit(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options,
                        std::shared_ptr<rpc::ReplySink> sink) override {
    return outgoing_.submit(peer, std::move(request), options, std::move(sink));
  }
  Result<void> tell(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options) override {
    return outgoing_.tell(peer, std::move(request), options);
  }
  Future<rpc::Contributions> gather(rpc::GatherRequest&& request, const CallOptions& options) override {
    return gatherer_.gather(std::move(request), options);
  }
  void cancel(const rpc::CallToken& token) noexcept override { outgoing_.cancel(token); }
  Result<std::shared_ptr<rpc::RRefHandle>> create_remote(const Peer& peer, rpc::OutRequest&& request,
                                                         const CallOptions& options, rpc::TypeKey type) override {
    return outgoing_.create_remote(peer, std::move(request), options, type);
  }
  RRefId make_rref_id() override { return rrefs_.make_rref_id(); }
  Result<std::shared_ptr<rpc::RRefHandle>> create_local(std::shared_ptr<rpc::HostedObject> object) override {
    return outgoing_.create_local(std::move(object));
  }
  void on_unobserved_error(std::string_view what, const Error& error) noexcept override;

  /// Changes the max_size of the batched function or method of that tag (rpc::kFunctionTag).
  /// Errors: unknown_function (not registered here), bad_arguments (out of range).
  Result<void> set_max_batch_size(const char* tag, std::size_t size);

  // MemberPorts
  remote::ActorHost& actor_host() override { return *actor_host_; }
  WorkerLife life() const noexcept override { return self_; }
  std::shared_ptr<transport::Session> session_with(const WorkerLife& peer) override {
    return peers_.session_with(peer);
  }
  std::shared_ptr<transport::Session> session_of(const Peer& peer) override { return PeerState::of(peer).session(); }
  std::shared_ptr<transport::Session> session_at(const rpc::PeerSession& session) override {
    return peers_.session_at(session);
  }
  bool start_is_over() const noexcept override { return joiner_.start_is_over(); }
  std::optional<Error> leaving() const override;
  bool has_ended() const noexcept override { return phase_ == Phase::ended; }
  void log(const std::string& line) const override { log_->write(line); }

 private:
  enum class Phase : std::uint8_t { running, leaving, draining, ended };

  WorkerCore(WorkerOptions options, Registry registry, net::Membership membership);
  /// Returns null if there is none.
  std::shared_ptr<transport::Session> session_with(const std::string& peer) const;

  // FrameHandler
  Result<std::shared_ptr<void>> on_manifest(transport::Session& session, wire::FrameKind kind,
                                            wire::ByteView manifest) override;
  Result<void> on_frame(const std::shared_ptr<transport::Session>& session, wire::InFrame frame) override;
  void on_tells_ended(std::size_t count) override { outgoing_.on_tells_ended(count); }
  void on_tells_lost(transport::Session& session, std::size_t count, const Error& reason) override;
  void on_end(transport::Session& session, const Error& reason) override;

  // For NamedActors: each name belongs to one service.
  caf::strong_actor_ptr find_named(const transport::Session& session, const remote::Address& name) override;
  caf::strong_actor_ptr stand_in(const remote::Address& name) override;

  /// Lets the rules of the registry decide from now on. @param own  of the registry, what no service has registered
  Result<void> check_permissions() const;
  void apply_permissions(std::vector<const rpc::FunctionEntry*> own);

  std::uint64_t work() const override;
  bool wait_until_idle(base::TimePoint deadline);
  void end_services(StopReport& given_up);
  void close_sessions(base::TimePoint deadline);
  /// Ends what is left after the calls. Returns whether all has ended in time.
  bool end_rest(base::TimePoint until);
  std::size_t count_rest() const;

  const WorkerOptions options_;
  Registry registry_;
  std::atomic<base::Duration> rpc_timeout_;
  const WorkerLife self_;
  Worker* worker_ = nullptr;
  Error farewell_;  // written before phase_ becomes Phase::leaving, constant from then on
  std::atomic<Phase> phase_{Phase::running};
  const std::shared_ptr<WorkerLog> log_;
  remote::MessageRegistry messages_;
  std::unique_ptr<remote::ActorHost> actor_host_;
  RRefHost rrefs_;
  std::unique_ptr<AutogradHost> autograd_;
  Peers peers_;
  Gatherer gatherer_;
  const std::vector<std::unique_ptr<Service>> other_services_;
  const std::vector<Service*> services_;  // all services; they end in the opposite order
  std::unique_ptr<rpc::CallHook> hook_;
  Joiner joiner_;
  OutgoingCalls outgoing_;
  ServedCalls served_;
};

}  // namespace caftan::actors
