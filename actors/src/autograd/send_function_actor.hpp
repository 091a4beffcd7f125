// The actor of one SendFunction: gets the gradients of its message from the peer it was recorded with. Virtual: made
// when a pass first addresses it, gone with the pass.
#pragma once

#include <memory>

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/stateful_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "autograd/named_behavior.hpp"

namespace caftan::actors {

class SendFunctionState {
 public:
  static constexpr const char* name = "send_function_actor";

  explicit SendFunctionState(caf::event_based_actor* self) : self_(self) {}

  void set_function(std::shared_ptr<const autograd::SendFunction> function, caf::actor context);
  void on_gradient(GradientMessage& message);

 private:
  caf::event_based_actor* const self_;
  std::shared_ptr<const autograd::SendFunction> function_;  // set before the first message
  caf::actor context_;
};

using SendFunctionActor = caf::stateful_actor<SendFunctionState, NamedBehavior>;

/// The behaviour of a SendFunctionActor. @param context  the actor that gets the gradients
caf::behavior send_function_actor(SendFunctionActor* self, std::shared_ptr<const autograd::SendFunction> function,
                                  caf::actor context);

}  // namespace caftan::actors
