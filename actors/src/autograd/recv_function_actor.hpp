// The actor of one RecvFunction: sends the gradients of its message to the SendFunction at the other end. Made when a
// pass first addresses it (remote::NamedActor), as the actor of that SendFunction is.
#pragma once

#include <caf/event_based_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "caftan/remote/internal/actor_host.hpp"

namespace caftan::actors {

class AutogradHost;

class RecvFunctionActor final : public caf::event_based_actor, public remote::NamedActor {
 public:
  RecvFunctionActor(caf::actor_config& config, AutogradHost& host, AutogradMessageId message);
  caf::behavior make_behavior() override;
  remote::Address wire_name() const noexcept override { return remote::Address::recv_function(message_); }
  const char* name() const override { return "recv_function_actor"; }

 private:
  AutogradHost& host_;
  const AutogradMessageId message_;
};

}  // namespace caftan::actors
