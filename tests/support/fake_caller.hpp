/// A job of workers in one process without sockets: each is a `Caller` that serves itself through the real packing,
/// tensor codec and Dispatcher. References are counted by shared_ptr only; the RRef protocol has tests of its own.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "baton_executor.hpp"
#include "caftan/rpc/call_site.hpp"
#include "caftan/rpc/caller.hpp"
#include "caftan/rpc/internal/serve.hpp"
#include "caftan/rpc/rref_handle.hpp"
#include "caftan/tensor/codec.hpp"

namespace caftan::test {
class FakeCaller;
}

namespace caftan {
/// The `Worker` that registered functions get in these tests.
class Worker : public CallSite {
 public:
  explicit Worker(test::FakeCaller& fake);
  const std::string& name() const;

 private:
  test::FakeCaller& fake_;
};
}  // namespace caftan

namespace caftan::test {

class FakeJob;

/// The value behind an RRef: pending, there, or failed.
struct FakeValue {
  RRefId id;
  Peer owner;
  rpc::TypeKey type;
  std::optional<Result<std::shared_ptr<rpc::HostedObject>>> outcome;
  std::deque<Promise<std::shared_ptr<rpc::HostedObject>>> waiting;

  void set(Result<std::shared_ptr<rpc::HostedObject>> result);
  Future<std::shared_ptr<rpc::HostedObject>> get(const std::weak_ptr<rpc::Caller>& caller);
};

class FakeCaller final : public rpc::Caller {
 public:
  FakeCaller(FakeJob& job, WorkerId id, std::string name, Registry registry);

  WorkerId id() const noexcept override { return id_; }
  const std::string& name() const noexcept override { return name_; }
  const Registry& registry() const noexcept override { return registry_; }
  base::Executor& executor() noexcept override;
  rpc::CallHook* hook() noexcept override { return hook_; }
  base::Duration default_timeout() const noexcept override { return default_timeout_; }
  Worker& worker() noexcept override { return *worker_; }
  Result<Peer> find_peer(std::string_view name) override;
  Result<Peer> find_peer(WorkerId id) override;
  bool knows(const rpc::PeerRecord& peer) const noexcept override;
  rpc::CallToken submit(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options,
                        std::shared_ptr<rpc::ReplySink> sink) override;
  Result<void> tell(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options) override;
  /// Not offered here: unsupported.
  Future<rpc::Contributions> gather(rpc::GatherRequest&& request, const CallOptions& options) override;
  void cancel(const rpc::CallToken& token) noexcept override;
  Result<std::shared_ptr<rpc::RRefHandle>> create_remote(const Peer& peer, rpc::OutRequest&& request,
                                                         const CallOptions& options, rpc::TypeKey type) override;
  RRefId make_rref_id() override { return {id_, {1}, ++last_rref_}; }
  Result<std::shared_ptr<rpc::RRefHandle>> create_local(std::shared_ptr<rpc::HostedObject> object) override;
  void on_unobserved_error(std::string_view what, const Error& error) noexcept override;

  // Settings and observations for tests.
  void set_hook(rpc::CallHook* hook) { hook_ = hook; }
  void set_default_timeout(base::Duration timeout) { default_timeout_ = timeout; }
  /// Sets a function that changes each request before the request is sent.
  void set_tamper(std::function<void(rpc::OutRequest&)> tamper) { tamper_ = std::move(tamper); }
  /// Sets a function that changes each reply before the reply is delivered.
  void set_tamper_reply(std::function<void(rpc::InPayload&)> tamper) { tamper_reply_ = std::move(tamper); }
  /// Makes every request to and from this worker fail with peer_down from now on.
  void go_down();
  const std::vector<std::string>& unobserved() const { return unobserved_; }
  std::size_t pending() const { return pending_.size(); }
  const rpc::OutRequest& last_request() const { return last_; }
  Peer peer() const { return peer_; }
  void make_worker() { worker_ = std::make_unique<Worker>(*this); }

 private:
  friend class FakeResponder;
  struct Pending {
    std::shared_ptr<rpc::ReplySink> sink;
    std::shared_ptr<rpc::RRefHandle> keep;
    std::uint64_t hook_ticket = 0;
    WorkerId to;
  };

  void serve(FakeCaller& from, wire::FrameKind kind, RRefId target, rpc::InPayload payload, CallInfo info);
  void finish(std::uint64_t call, Result<rpc::InPayload> reply);
  Result<rpc::InPayload> carry(FakeCaller& to, wire::Bytes body, std::vector<at::Tensor> tensors,
                               const rpc::RRefHandles& rrefs,
                               tensor::SharedMemory shared = tensor::SharedMemory::reference);

  FakeJob& job_;
  const WorkerId id_;
  const std::string name_;
  Registry registry_;
  rpc::Dispatcher dispatcher_;
  std::unique_ptr<Worker> worker_;
  Peer peer_;
  rpc::CallHook* hook_ = nullptr;
  base::Duration default_timeout_{0};
  std::function<void(rpc::OutRequest&)> tamper_;
  std::function<void(rpc::InPayload&)> tamper_reply_;
  bool down_ = false;
  std::uint64_t last_call_ = 0;
  std::uint64_t last_rref_ = 0;
  rpc::OutRequest last_;
  std::map<std::uint64_t, Pending> pending_;
  std::map<std::pair<WorkerId, std::uint64_t>, std::shared_ptr<CancelFlag>> serving_;
  std::vector<std::string> unobserved_;
};

/// The workers "worker0", "worker1", ... with one registry each, on one BatonExecutor.
class FakeJob {
 public:
  FakeJob() = default;
  /// Lets a day of the clock pass before the workers end, so that tasks which still wait come to their end.
  ~FakeJob();
  FakeCaller& add(Registry registry);
  FakeCaller& at(std::size_t index) { return *workers_.at(index); }
  /// Ends a worker: callers that still refer to it get shut_down.
  void end(std::size_t index) { workers_.at(index).reset(); }

  BatonExecutor executor;
  std::vector<std::shared_ptr<FakeCaller>> workers_;
  std::map<RRefId, std::weak_ptr<FakeValue>> values;
};

}  // namespace caftan::test
