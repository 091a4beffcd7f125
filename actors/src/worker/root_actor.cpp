#include "worker/root_actor.hpp"

#include <caf/actor_cast.hpp>

#include "caftan/remote/internal/actor_exchange.hpp"
#include "service/member_ports.hpp"

namespace caftan::actors {

using remote::ActorExchange;

caf::behavior root_actor(RootActor* self, RootPorts* ports, LeavePorts* leave, ForkRequestPorts* forks) {
  self->set_exit_handler([self](const caf::exit_msg& exit) {
    if (exit.reason == caf::exit_reason::user_shutdown) self->quit(exit.reason);
  });
  self->set_down_handler([self](const caf::down_msg& down) { self->state.on_down(down); });
  self->state.set_ports(*forks);
  return {
      [self](const ForkRequested& request) { self->state.on_fork_requested(request); },
      [self, ports](const net::View& view) {
        if (const auto session = ActorExchange::session_of(self->current_sender())) ports->on_view(*session, view);
      },
      [self, ports](const net::Met&) {
        if (const auto session = ActorExchange::session_of(self->current_sender())) ports->on_met(*session);
      },
      [self, leave](const net::LeaveReport& report) {
        if (const auto session = ActorExchange::session_of(self->current_sender())) leave->on_report(*session, report);
      },
      [self, leave](const net::RunReturned&) {
        if (const auto session = ActorExchange::session_of(self->current_sender())) leave->on_returned(*session);
      },
      [leave](const PeerLost& lost) { leave->on_lost(lost); },
  };
}

void RootActorState::on_fork_requested(const ForkRequested& request) {
  const auto session = ActorExchange::session_of(self_->current_sender());
  if (!session) return;
  // A request is about the fork whose actor sends it: an actor registers no forks but its own.
  const rpc::PeerSession asker = peer_session(*session);
  const caf::strong_actor_ptr child = self_->current_sender();
  if (!forks_->on_fork_requested(request, asker, child)) return;
  parked_[child->id()] = {request.fork, asker};
  self_->monitor(caf::actor_cast<caf::actor>(child));
}

void RootActorState::on_down(const caf::down_msg& down) {
  if (const auto asker = parked_.extract(down.source.id())) {
    forks_->asker_gone(asker.mapped().first, asker.mapped().second);
  }
}

}  // namespace caftan::actors
