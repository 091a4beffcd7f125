/// The actor of one RecvFunction: sends the gradients of its message to the SendFunction at the other end. Made when a
/// pass first addresses it (remote::NamedActor), as the actor of that SendFunction is.
#pragma once

#include <caf/behavior.hpp>
#include <caf/stateful_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "autograd/autograd_ports.hpp"
#include "service/named_behavior.hpp"

namespace caftan::actors {

class RecvFunctionState {
 public:
  static constexpr const char* name = "recv_function_actor";

  explicit RecvFunctionState(caf::event_based_actor* self) : self_(self) {}

  void set_function(RecvFunctionPorts& ports, const AutogradMessageId& message);
  void ship(ShipGradient& gradient);

 private:
  caf::event_based_actor* const self_;
  RecvFunctionPorts* ports_ = nullptr;  // set before the first message
  AutogradMessageId message_;
};

using RecvFunctionActor = caf::stateful_actor<RecvFunctionState, NamedBehavior>;

/// The behaviour of a RecvFunctionActor. @param ports  outlives the actor
caf::behavior recv_function_actor(RecvFunctionActor* self, RecvFunctionPorts* ports, const AutogradMessageId& message);

}  // namespace caftan::actors
