/// `RootActor`: the one actor of a worker that peers can address before they know any other.
#pragma once

#include <map>
#include <utility>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "caftan/net/internal/leave_together.hpp"
#include "caftan/net/internal/membership.hpp"
#include "rref/rref_ports.hpp"
#include "worker/root_ports.hpp"

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::View)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::Met)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::LeaveReport)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::RunReturned)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::PeerLost)

namespace caftan::actors {

class RootActorState {
 public:
  static constexpr const char* name = "root_actor";

  explicit RootActorState(caf::event_based_actor* self) : self_(self) {}

  void set_ports(ForkRequestPorts& forks) { forks_ = &forks; }
  void on_fork_requested(const ForkRequested& request);
  void on_down(const caf::down_msg& down);

 private:
  caf::event_based_actor* const self_;
  ForkRequestPorts* forks_ = nullptr;  // set before the first message
  std::map<caf::actor_id, std::pair<ForkId, rpc::PeerSession>>
      parked_;  // children whose request came before the creation, until they end
};

using RootActor = caf::stateful_actor<RootActorState>;

/// The behaviour of a RootActor. @param ports, leave, forks  outlive the actor
caf::behavior root_actor(RootActor* self, RootPorts* ports, LeavePorts* leave, ForkRequestPorts* forks);

}  // namespace caftan::actors
