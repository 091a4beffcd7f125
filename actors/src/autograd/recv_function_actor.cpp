#include "autograd/recv_function_actor.hpp"

#include "autograd/autograd_host.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

RecvFunctionActor::RecvFunctionActor(caf::actor_config& config, AutogradHost& host, AutogradMessageId message)
    : caf::event_based_actor(config), host_(host), message_(message) {}

caf::behavior RecvFunctionActor::make_behavior() {
  return {[this](ShipGradient& ship) {
    const auto there = host_.proxy(ship.to, remote::Address::send_function(message_));
    // Without a session the gradient has no receiver; the context's actor notices the peer's end by itself.
    if (!there) return;
    const autograd::PassId pass = ship.grad.header.pass;
    const auto sent = remote::ActorExchange::send(
        there, caf::actor_cast<caf::strong_actor_ptr>(this),
        caf::make_message(GradientMessage{std::move(ship.grad), std::move(ship.encoded), {}}));
    if (sent || sent.error().code() == Errc::peer_down) return;
    host_.gradient_not_sent(pass,
                            Error(sent.error().code(), sent.error().worker(),
                                  "the gradients of message " + to_string(message_) + ": " + sent.error().text()));
  }};
}

}  // namespace caftan::actors
