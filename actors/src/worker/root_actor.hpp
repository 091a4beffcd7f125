/// `RootActor`: the one actor of a worker that peers can address before they know any other.
#pragma once

#include <map>
#include <utility>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>

#include "caftan/net/internal/membership.hpp"
#include "rref/rref_host.hpp"
#include "worker/joiner.hpp"

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::View)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::net::Met)

namespace caftan::actors {

class RootActor final : public caf::event_based_actor {
 public:
  RootActor(caf::actor_config& config, Joiner& joiner, RRefHost& rrefs);
  const char* name() const override { return "worker_actor"; }
  caf::behavior make_behavior() override;

 private:
  void on_fork_requested(const ForkRequested& request);

  Joiner& joiner_;
  RRefHost& rrefs_;
  std::map<caf::actor_id, std::pair<ForkId, rpc::PeerSession>>
      parked_;  // children whose request came before its creation, until they end
};

}  // namespace caftan::actors
