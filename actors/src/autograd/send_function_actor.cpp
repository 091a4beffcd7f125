#include "autograd/send_function_actor.hpp"

#include <utility>

#include <caf/send.hpp>

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

caf::behavior send_function_actor(SendFunctionActor* self, std::shared_ptr<const autograd::SendFunction> function,
                                  caf::actor context) {
  self->set_wire_name(remote::Address::send_function(function->message().message));
  self->state.set_function(std::move(function), std::move(context));
  return {[self](GradientMessage& message) { self->state.on_gradient(message); }};
}

void SendFunctionState::set_function(std::shared_ptr<const autograd::SendFunction> function, caf::actor context) {
  function_ = std::move(function);
  context_ = std::move(context);
}

void SendFunctionState::on_gradient(GradientMessage& message) {
  const auto session = remote::ActorExchange::session_of(self_->current_sender());
  if (!session) return;  // it ended, which the context's actor notices and fails the pass
  context_event::GradientArrived arrived;
  arrived.from = session->peer().life();
  arrived.valid = std::move(message.received);
  if (arrived.valid) {
    if (const auto fits = function_->check(message.tensors); !fits) {
      arrived.valid = Error(Errc::invalid_gradient, fits.error().text());
    }
  }
  arrived.grad = std::move(message.grad);
  arrived.tensors = std::move(message.tensors);
  caf::anon_send(context_, ContextEvent{std::move(arrived)});
}

}  // namespace caftan::actors
