#include "autograd/send_function_actor.hpp"

#include <utility>

#include <caf/send.hpp>

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

caf::behavior send_function_actor(SendFunctionActor* self, std::shared_ptr<const autograd::SendFunction> function,
                                  std::shared_ptr<autograd::ContextRecord> record, caf::actor context) {
  self->set_wire_name(remote::Address::send_function(function->message().message));
  self->state.set_function(std::move(function), std::move(record), std::move(context));
  return {[self](GradientMessage& message) { self->state.on_gradient(message); }};
}

void SendFunctionState::set_function(std::shared_ptr<const autograd::SendFunction> function,
                                     std::shared_ptr<autograd::ContextRecord> record, caf::actor context) {
  function_ = std::move(function);
  record_ = std::move(record);
  context_ = std::move(context);
}

void SendFunctionState::on_gradient(GradientMessage& message) {
  const auto session = remote::ActorExchange::session_of(self_->current_sender());
  if (!session) return;  // the session has ended; the context's actor learns that by itself and fails the pass
  context_event::GradientArrived arrived;
  arrived.from = session->peer().life;
  arrived.grad = std::move(message.grad);
  for (const at::Tensor& tensor : message.tensors) arrived.bytes += autograd::gradient_bytes(tensor);
  record_->deliver(arrived.grad.header.pass.number, arrived.grad.message, checked(message));  // DA-25
  caf::anon_send(context_, ContextEvent{std::move(arrived)});
}

Result<std::vector<at::Tensor>> SendFunctionState::checked(GradientMessage& message) const {
  if (!message.received) return message.received.error();
  if (const auto fits = function_->check(message.tensors); !fits) {
    return Error(Errc::invalid_gradient, fits.error().text());
  }
  return std::move(message.tensors);
}

}  // namespace caftan::actors
