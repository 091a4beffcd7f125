/// `ServedCalls`: the calls that peers make here, from a frame to a ServedCall, and from its reply back to a frame.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "caftan/actors/worker.hpp"
#include "caftan/base/internal/fifo.hpp"
#include "caftan/base/internal/gate.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/internal/serve.hpp"
#include "rref/rref_host.hpp"
#include "service/member_ports.hpp"
#include "worker/worker_log.hpp"

namespace caftan::actors {

class ServedCall;
class TellQueue;

/// Threads: any, all methods.
class ServedCalls {
 public:
  ServedCalls(MemberPorts& ports, const net::Limits& limits, RRefHost& rrefs, WorkerLog& log)
      : ports_(ports), limits_(limits), rrefs_(rrefs), log_(log), dispatcher_(ports) {}

  /// Refuses from now on what the table refuses. @param permissions  outlives this; called before the first call comes
  void set_permissions(const rpc::PermissionTable& permissions) noexcept {
    permissions_ = &permissions;
    dispatcher_.set_permissions(permissions);
  }

  /// A complete call or cancel. As transport::FrameHandler::on_frame.
  Result<void> on_frame(const std::shared_ptr<transport::Session>& session, wire::InFrame frame);

  /// The session has ended.
  void on_session_end(const transport::Session& session);

  /// Calls that were not answered are inside. It is never closed: calls of peers are served until sessions end.
  base::Gate& gate() noexcept { return gate_; }
  /// As rpc::Batches::set_max_size.
  Result<void> set_max_batch_size(const rpc::FunctionEntry& function, std::size_t size) {
    return dispatcher_.batches().set_max_size(function, size);
  }
  /// The worker stops: lets its named objects go, and starts the runs that answer the requests of batched functions.
  /// From now on no object gets a name, and no request waits for others.
  void begin_stop() {
    dispatcher_.named_objects().close();
    dispatcher_.batches().close();
  }
  /// Returns how many calls have come.
  std::uint64_t count() const noexcept { return count_.load(); }

  // For ServedCall.
  MemberPorts& ports() noexcept { return ports_; }
  RRefHost& rrefs() noexcept { return rrefs_; }
  rpc::Dispatcher& dispatcher() noexcept { return dispatcher_; }
  const net::Limits& limits() const noexcept { return limits_; }
  /// Returns null where everything is allowed.
  const rpc::PermissionTable* permissions() const noexcept { return permissions_; }
  /// Sends a reply, unless the session has ended. Errors: what cannot be encoded or is too large; nothing was sent
  /// then.
  Result<void> send_reply(const std::shared_ptr<transport::Session>& session, std::uint64_t call,
                          Result<rpc::OutReply>&& reply);
  /// How a call spent its time that ended after its deadline.
  struct Lateness {
    base::Duration late;    ///< since its deadline
    base::Duration waited;  ///< before it began
    base::Duration took;    ///< since then
  };
  /// Logs that a call ended after its deadline (CALL-18).
  void log_late(std::string_view function, const std::string& caller, const Lateness& lateness);
  /// Logs that a one-way call failed: its caller does not learn it (TL-9).
  void log_failed(const std::string& caller, const Error& error);

 private:
  using Cancellable = std::unordered_map<std::uint64_t, std::weak_ptr<ServedCall>>;
  static constexpr std::size_t kMostSpare = 64;

  void remove_ended_locked() CAFTAN_REQUIRES(mutex_);
  std::shared_ptr<TellQueue> queue_of(const transport::Session& session, bool make);
  Result<void> send_error(const std::shared_ptr<transport::Session>& session, std::uint64_t call, const Error& error);

  MemberPorts& ports_;
  const net::Limits& limits_;
  RRefHost& rrefs_;
  WorkerLog& log_;
  rpc::Dispatcher dispatcher_;
  const rpc::PermissionTable* permissions_ = nullptr;
  base::Gate gate_;
  std::atomic<std::uint64_t> count_{0};
  base::Mutex mutex_;
  // By ServedCall::key; also some calls that have ended.
  Cancellable cancellable_ CAFTAN_GUARDED_BY(mutex_);
  base::Fifo<std::uint64_t> keys_ CAFTAN_GUARDED_BY(mutex_);  // of all of them, in the order of the next look
  // Of the sessions over which one-way calls have come; kept as addresses of the sessions.
  std::unordered_map<const transport::Session*, std::shared_ptr<TellQueue>> tells_ CAFTAN_GUARDED_BY(mutex_);
  std::atomic<bool> has_tells_{false};  // whether tells_ has ever had a queue
  // Entries of calls that have ended: the next calls take them instead of memory.
  std::vector<Cancellable::node_type> spare_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
