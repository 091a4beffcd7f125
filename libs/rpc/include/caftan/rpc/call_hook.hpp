/// `CallHook`: seven functions through which a higher layer (autograd, profiling) takes part in calls. A worker has at
/// most one hook, which sees calls, creations, fetches, methods, operators and self-calls alike.
#pragma once

#include "caftan/rpc/request.hpp"

namespace caftan::rpc {

/// A value that the hook's on_request chooses, and by which its later calls find the request again. The worker keeps it
/// with the request (OutRequest::hook_ticket).
struct HookTicket {
  std::uint64_t value = 0;
};

/// Invariant CALL-3: every `on_request` that returned a ticket meets exactly one of on_unsent, on_reply_received,
/// on_reply_dropped, with the ticket it returned. Threads: any; must not block and must not throw. Callers: the typed
/// calls for on_request, the Dispatcher for on_receive and on_reply, the worker for the others.
class CallHook {
 public:
  virtual ~CallHook() = default;

  /// Called after the arguments were packed, before the request is sent. May fill `request.autograd` and
  /// `request.recorded` and replace tensors. An error becomes the call's outcome, and nothing is sent then.
  virtual Result<HookTicket> on_request(const Peer& to, OutRequest& request) = 0;

  /// The request was not accepted by the lane: nothing was sent.
  virtual void on_unsent(HookTicket ticket) noexcept = 0;

  /// Called at the callee, before arguments are decoded. May set `info.autograd_context` and replace tensors. An error
  /// refuses the call.
  virtual Result<void> on_receive(InPayload& payload, CallInfo& info) = 0;

  /// Called at the callee, after the result was packed, under the grad mode of the call.
  virtual void on_reply(const CallInfo& info, OutReply& reply) = 0;

  /// Called at the caller, before the promise resolves. May replace tensors. An error becomes the call's outcome. Not
  /// called for error replies: for these on_reply_dropped is called.
  virtual Result<void> on_reply_received(HookTicket ticket, InPayload& reply) = 0;

  /// The request ended without a value: an error reply, timeout, cancelled, peer down, shut down.
  virtual void on_reply_dropped(HookTicket ticket, const Error& error) noexcept = 0;

  /// The last session with `peer` has ended; called after on_reply_dropped of its requests.
  virtual void on_peer_down(const WorkerLife& peer) noexcept = 0;
};

}  // namespace caftan::rpc
