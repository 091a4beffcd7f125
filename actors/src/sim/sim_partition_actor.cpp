#include "sim/sim_partition_actor.hpp"

#include <utility>

#include "caftan/remote/internal/actor_exchange.hpp"

namespace caftan::actors {

caf::behavior sim_partition_actor(SimPartitionActor* self, std::uint64_t simulation, std::uint32_t index,
                                  std::shared_ptr<SimPartitionPorts> ports) {
  self->set_wire_name(remote::Address::sim_partition(simulation, index));
  self->state.set_ports(std::move(ports));
  return {[self](SimFrame& frame) { self->state.on_frame(frame); },
          [self](const SimPeerDown& down) { self->state.on_lost(down); }};
}

void SimPartitionState::on_frame(SimFrame& frame) {
  const auto session = remote::ActorExchange::session_of(self_->current_sender());
  if (!session) return;  // the session has ended; on_lost follows
  ports_->take_frame(session->peer().life, std::move(frame.bytes));
}

}  // namespace caftan::actors
