#include "autograd/closed_contexts_actor.hpp"

#include <utility>

#include <caf/actor_cast.hpp>

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

caf::behavior closed_contexts_actor(ClosedContextsActor* self, ClosedContextsPorts* ports) {
  return {[self, ports](const PassEnvelope& envelope) {
    const auto session = remote::ActorExchange::session_of(self->current_sender());
    if (!session) return;
    const WorkerLife from = session->peer().life;
    if (const auto* release = std::get_if<autograd::Release>(&envelope.message)) ports->learn_released(from, *release);
    auto reply = ports->refuse(from, envelope.message);
    if (!reply) return;
    self->send(caf::actor_cast<caf::actor>(self->current_sender()), PassEnvelope{std::move(reply->message)});
  }};
}

}  // namespace caftan::actors
