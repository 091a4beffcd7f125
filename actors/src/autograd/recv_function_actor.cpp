#include "autograd/recv_function_actor.hpp"

#include <utility>

#include <caf/actor_cast.hpp>

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

caf::behavior recv_function_actor(RecvFunctionActor* self, RecvFunctionPorts* ports, const AutogradMessageId& message) {
  self->set_wire_name(remote::Address::recv_function(message));
  self->state.set_function(*ports, message);
  return {[self](ShipGradient& gradient) { self->state.ship(gradient); }};
}

void RecvFunctionState::set_function(RecvFunctionPorts& ports, const AutogradMessageId& message) {
  ports_ = &ports;
  message_ = message;
}

void RecvFunctionState::ship(ShipGradient& gradient) {
  const auto there = ports_->proxy(gradient.to, remote::Address::send_function(message_));
  // Without a session the gradient has no receiver; the context's actor notices the peer's end by itself.
  if (!there) return;
  const autograd::PassId pass = gradient.grad.header.pass;
  const auto sent = remote::ActorExchange::send(
      there, caf::actor_cast<caf::strong_actor_ptr>(self_),
      caf::make_message(GradientMessage{std::move(gradient.grad), std::move(gradient.encoded), {}}));
  if (sent || sent.error().code() == Errc::peer_down) return;
  ports_->gradient_not_sent(pass,
                            Error(sent.error().code(), sent.error().worker(),
                                  "the gradients of message " + to_string(message_) + ": " + sent.error().text()));
}

}  // namespace caftan::actors
