/// `OutgoingCalls`: the calls that this worker makes and the values that it creates, from a request to its outcome.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "caftan/actors/worker.hpp"
#include "caftan/base/internal/gate.hpp"
#include "rref/rref_host.hpp"
#include "service/member_ports.hpp"
#include "worker/joiner.hpp"
#include "worker/peers.hpp"

namespace caftan::actors {

/// Threads: any, all methods.
class OutgoingCalls {
 public:
  struct Parts {
    MemberPorts& ports;
    const WorkerOptions& options;
    const Peers& peers;
    const Joiner& joiner;
    RRefHost& rrefs;
  };
  explicit OutgoingCalls(const Parts& parts) : parts_(parts) {}

  // As rpc::Caller.
  rpc::CallToken submit(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options,
                        std::shared_ptr<rpc::ReplySink> sink);
  Result<void> tell(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options);
  void cancel(const rpc::CallToken& token) noexcept;
  Result<std::shared_ptr<rpc::RRefHandle>> create_remote(const Peer& peer, rpc::OutRequest&& request,
                                                         const CallOptions& options, rpc::TypeKey type);
  Result<std::shared_ptr<rpc::RRefHandle>> create_local(std::shared_ptr<rpc::HostedObject> object);

  /// So many one-way calls have ended at their callee, or were lost with it.
  void on_tells_ended(std::size_t count) noexcept;
  void on_tells_lost(const std::string& peer, std::size_t count, const Error& reason);
  /// Returns how many one-way calls were lost.
  std::uint64_t tells_lost() const noexcept { return tells_lost_.load(); }

  /// Calls without an outcome are inside, and one-way calls that have not ended. Once it is closed, new ones fail with
  /// shut_down.
  base::Gate& gate() noexcept { return gate_; }

 private:
  class Pending;
  /// What a request has taken before it is sent; submit uses it or gives it back.
  struct SendSlot {
    std::shared_ptr<transport::Session> session;
    std::uint64_t room;
    OutgoingRRefs handed;
    bool has_waited;  ///< time has passed since the request began
  };
  Result<SendSlot> reserve(const Peer& peer, const rpc::OutRequest& request, const CallOptions& options,
                           bool one_way = false);
  Result<CallId> submit(SendSlot& slot, rpc::OutRequest& request, std::shared_ptr<rpc::ReplySink> sink);
  /// Returns why no call is made any more. Precondition: the gate is closed, and so the worker leaves.
  Error leaving() const;

  const Parts parts_;
  std::atomic<std::uint64_t> tells_lost_{0};
  base::Gate gate_;
};

}  // namespace caftan::actors
