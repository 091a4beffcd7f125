// The actor of one RecvFunction: sends the gradients of its message to the SendFunction at the other end. Virtual, as
// the other end's.
#pragma once

#include <caf/event_based_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "caftan/transport/actor_host.hpp"

namespace caftan::actors {

class AutogradHost;

class RecvFunctionActor final : public caf::event_based_actor, public transport::NamedActor {
 public:
  RecvFunctionActor(caf::actor_config& config, AutogradHost& host, AutogradMessageId message);
  caf::behavior make_behavior() override;
  transport::Address wire_name() const noexcept override { return transport::Address::recv_function(message_); }
  const char* name() const override { return "recv_function_actor"; }

 private:
  AutogradHost& host_;
  const AutogradMessageId message_;
};

}  // namespace caftan::actors
