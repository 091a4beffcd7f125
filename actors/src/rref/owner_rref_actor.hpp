/// The actor of one OwnerRRef: the value, and a `ForkTable` of the references to it. The actor monitors each fork's
/// actor, so that a fork counts until its actor ends (RR-7).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "caftan/rpc/internal/fork_table.hpp"
#include "rref/ordered_jobs.hpp"
#include "rref/rref_messages.hpp"
#include "rref/rref_ports.hpp"

namespace caftan::actors {

class OwnerRRefState {
 public:
  static constexpr const char* name = "owner_rref_actor";

  explicit OwnerRRefState(caf::event_based_actor* self) : self_(self) {}
  /// Runs however the actor ends. The value goes with it: a call under way holds the actor, and the value may hold the
  /// promise that the call waits for.
  ~OwnerRRefState();
  OwnerRRefState(const OwnerRRefState&) = delete;
  OwnerRRefState& operator=(const OwnerRRefState&) = delete;

  void set_ports(OwnerRRefPorts& ports, RRefId id);
  void on_event(OwnerEvent& event);
  void on_down(const caf::down_msg& down);

 private:
  struct Watched {
    rpc::PeerSession session;
    caf::strong_actor_ptr proxy;  // held because the actor's down message would never come without a handle (RR-7)
  };

  /// @param known  the proxy of the fork that the actions are about, if the event had one
  void perform(rpc::OwnerActions actions, const caf::strong_actor_ptr& known = nullptr);
  void set_value(Result<std::shared_ptr<rpc::HostedObject>> value);
  void accept(std::shared_ptr<ValueJob> job);
  void start(const std::shared_ptr<ValueJob>& job);
  void refuse_waiting(const Error& reason);

  caf::event_based_actor* const self_;
  OwnerRRefPorts* ports_ = nullptr;  // set before the first event
  RRefId id_;
  rpc::ForkTable table_;
  std::map<ForkId, Watched> watched_;
  std::map<caf::actor_id, ForkId> by_proxy_;
  std::optional<Result<std::shared_ptr<rpc::HostedObject>>> value_;
  std::vector<std::shared_ptr<ValueJob>> waiting_;
  std::shared_ptr<OrderedJobs> ordered_;  // null: no job whose order counts has come
};

using OwnerRRefActor = caf::stateful_actor<OwnerRRefState>;

/// The behaviour of an OwnerRRefActor. @param ports  outlives the actor
caf::behavior owner_rref_actor(OwnerRRefActor* self, OwnerRRefPorts* ports, RRefId id);

}  // namespace caftan::actors
