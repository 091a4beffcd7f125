/// `RecordingHook`: the call hook that makes calls part of autograd contexts. It records tensors that need gradients
/// when they cross, in both directions, and gives called code the context of its caller. What is recorded is decided by
/// the sender alone (DA-18).
#pragma once

#include <memory>

#include "caftan/autograd/internal/context_host.hpp"
#include "caftan/rpc/call_hook.hpp"

namespace caftan::autograd {

class RecordingHook final : public rpc::CallHook {
 public:
  /// @param host  outlives the hook
  /// @param next  another hook that sees every call too; null = none
  RecordingHook(ContextHost& host, std::shared_ptr<rpc::CallHook> next) : host_(host), next_(std::move(next)) {}

  ContextHost& host() noexcept { return host_; }

  /// Errors: context_released (the context of the running code is over), foreign_context (it belongs to another
  /// worker), unsupported (the code runs in a checkpointed segment), limit_exceeded (too many recorded messages).
  Result<rpc::HookTicket> on_request(const Peer& to, rpc::OutRequest& request) override;
  void on_unsent(rpc::HookTicket ticket) noexcept override;
  /// Errors: context_released, unknown_context, malformed_payload.
  Result<void> on_receive(rpc::InPayload& payload, CallInfo& info) override;
  void on_reply(const CallInfo& info, rpc::OutReply& reply) override;
  Result<void> on_reply_received(rpc::HookTicket ticket, rpc::InPayload& reply) override;
  void on_reply_dropped(rpc::HookTicket ticket, const Error& error) noexcept override;
  void on_peer_down(const WorkerLife& peer) noexcept override;

 private:
  struct Ticket;
  Result<void> record_request(const Peer& to, rpc::OutRequest& request, Ticket& ticket);

  ContextHost& host_;
  const std::shared_ptr<rpc::CallHook> next_;
};

}  // namespace caftan::autograd
