#include "worker/root_actor.hpp"

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

using remote::ActorExchange;

RootActor::RootActor(caf::actor_config& config, Joiner& joiner, RRefHost& rrefs)
    : caf::event_based_actor(config), joiner_(joiner), rrefs_(rrefs) {
  set_exit_handler([this](const caf::exit_msg& exit) {
    if (exit.reason == caf::exit_reason::user_shutdown) quit(exit.reason);
  });
  set_down_handler([this](const caf::down_msg& down) {
    if (const auto asker = parked_.extract(down.source.id())) {
      rrefs_.parked().child_gone(asker.mapped().first, asker.mapped().second);
    }
  });
}

caf::behavior RootActor::make_behavior() {
  return {
      [this](const ForkRequested& request) { on_fork_requested(request); },
      [this](const net::View& view) {
        if (const auto session = ActorExchange::session_of(current_sender())) joiner_.on_view(*session, view);
      },
      [this](const net::Met&) {
        if (const auto session = ActorExchange::session_of(current_sender())) joiner_.on_met(*session);
      },
  };
}

void RootActor::on_fork_requested(const ForkRequested& request) {
  const auto session = ActorExchange::session_of(current_sender());
  if (!session) return;
  // A request is about the fork whose actor sends it: an actor registers no forks but its own.
  const rpc::PeerSession asker = peer_session(*session);
  const caf::strong_actor_ptr child = current_sender();
  if (!rrefs_.on_fork_requested(request, asker, child)) return;
  parked_[child->id()] = {request.fork, asker};
  monitor(caf::actor_cast<caf::actor>(child));
}

}  // namespace caftan::actors
