// The actor of one SendFunction: gets the gradients of its message from the peer it was recorded with. Virtual: made
// when a pass first addresses it, gone with the pass.
#pragma once

#include <caf/event_based_actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "caftan/remote/internal/actor_host.hpp"

namespace caftan::actors {

class SendFunctionActor final : public caf::event_based_actor, public remote::NamedActor {
 public:
  SendFunctionActor(caf::actor_config& config, std::shared_ptr<const autograd::SendFunction> function,
                    caf::actor context);
  caf::behavior make_behavior() override;
  remote::Address wire_name() const noexcept override;
  const char* name() const override { return "send_function_actor"; }

 private:
  void on_gradient(GradientMessage& message);

  const std::shared_ptr<const autograd::SendFunction> function_;
  const caf::actor context_;
};

}  // namespace caftan::actors
