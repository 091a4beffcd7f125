/// The actor of one SendFunction: gets the gradients of its message from the peer it was recorded with, checks them,
/// delivers them to the context's record and reports to the context's actor. Virtual: made when a pass first addresses
/// it, gone with the pass.
#pragma once

#include <memory>
#include <vector>

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/stateful_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "service/named_behavior.hpp"

namespace caftan::actors {

class SendFunctionState {
 public:
  static constexpr const char* name = "send_function_actor";

  explicit SendFunctionState(caf::event_based_actor* self) : self_(self) {}

  void set_function(std::shared_ptr<const autograd::SendFunction> function,
                    std::shared_ptr<autograd::ContextRecord> record, caf::actor context);
  void on_gradient(GradientMessage& message);

 private:
  Result<std::vector<at::Tensor>> checked(GradientMessage& message) const;

  caf::event_based_actor* const self_;
  // This member and the two below are set before the first message.
  std::shared_ptr<const autograd::SendFunction> function_;
  std::shared_ptr<autograd::ContextRecord> record_;
  caf::actor context_;
};

using SendFunctionActor = caf::stateful_actor<SendFunctionState, NamedBehavior>;

/// The behaviour of a SendFunctionActor.
/// @param record   the context's record, which gets the gradients
/// @param context  the context's actor, to which the arrival of the gradients is reported
caf::behavior send_function_actor(SendFunctionActor* self, std::shared_ptr<const autograd::SendFunction> function,
                                  std::shared_ptr<autograd::ContextRecord> record, caf::actor context);

}  // namespace caftan::actors
