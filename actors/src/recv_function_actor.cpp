#include "recv_function_actor.hpp"

#include "autograd_host.hpp"

namespace caftan::actors {

RecvFunctionActor::RecvFunctionActor(caf::actor_config& config, AutogradHost& host, AutogradMessageId message)
    : caf::event_based_actor(config), host_(host), message_(message) {}

caf::behavior RecvFunctionActor::make_behavior() {
  return {[this](ShipGradient& ship) {
    const auto there = host_.proxy(ship.to, transport::Address::send_function(message_));
    // Without a session nobody is waiting: the context's actor sees its peer's end by itself.
    if (!there) return;
    there->enqueue(caf::actor_cast<caf::strong_actor_ptr>(this), caf::make_message_id(),
                   caf::make_message(GradientMessage{std::move(ship.grad), std::move(ship.encoded), {}}), nullptr);
  }};
}

}  // namespace caftan::actors
