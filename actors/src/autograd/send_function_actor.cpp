#include "autograd/send_function_actor.hpp"

#include <caf/send.hpp>

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

SendFunctionActor::SendFunctionActor(caf::actor_config& config, std::shared_ptr<const autograd::SendFunction> function,
                                     caf::actor context)
    : caf::event_based_actor(config), function_(std::move(function)), context_(std::move(context)) {}

remote::Address SendFunctionActor::wire_name() const noexcept {
  return remote::Address::send_function(function_->message().message);
}

caf::behavior SendFunctionActor::make_behavior() {
  return {[this](GradientMessage& message) { on_gradient(message); }};
}

void SendFunctionActor::on_gradient(GradientMessage& message) {
  const auto session = remote::ActorExchange::session_of(current_sender());
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
