/// What the actors of references ask of their worker: `OwnerRRefPorts` and `UserRRefPorts`, which `RRefHost`
/// implements.
#pragma once

#include <memory>
#include <optional>

#include <caf/actor_control_block.hpp>

#include "caftan/actors/rref_info.hpp"
#include "caftan/base/executor.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/internal/fork_table.hpp"
#include "rref/rref_messages.hpp"

namespace caftan::actors {

/// What the actor of a value uses of its worker. Threads: any, all methods; none blocks.
class OwnerRRefPorts {
 public:
  virtual ~OwnerRRefPorts() = default;
  /// Returns the executor that runs what uses the value.
  virtual base::Executor& executor() = 0;
  /// Returns the proxy of a fork's actor in that session; if the session has ended, a proxy that is down already.
  virtual caf::strong_actor_ptr fork_proxy(ForkId fork, const rpc::PeerSession& session) = 0;
  /// Answers the request of a fork to be counted.
  virtual void answer_fork(ForkId fork, const rpc::PeerSession& session, Errc code) = 0;
  /// For the listing: the actor monitors a fork from now on, or no longer.
  virtual void fork_counted(RRefId id, ForkInfo fork) = 0;
  virtual void fork_ended(RRefId id, ForkId fork) = 0;
  /// The value is there, or never will be: handles at the owner learn why.
  virtual void value_known(RRefId id, const Result<std::shared_ptr<rpc::HostedObject>>& value) = 0;
  /// The actor is ending: no lookup finds it from now on. May come twice.
  virtual void owner_ending(RRefId id) = 0;
  /// Returns this worker's life where only workers may use its values that hold a reference to them (permissions.md,
  /// PM-5); nothing where all may.
  virtual std::optional<WorkerLife> guarded_by() const = 0;
  /// Returns the error of calls whose value ends because this worker leaves; nothing before the worker leaves.
  virtual std::optional<Error> leaving() const = 0;
};

/// What the root actor, which gets the requests of forks, uses of its worker. Threads: any, all methods; none blocks.
class ForkRequestPorts {
 public:
  virtual ~ForkRequestPorts() = default;
  /// @param asker  the session in which the request came
  /// @param child  the proxy of the actor that asks
  /// Returns whether the request is parked: then call `asker_gone` when the child ends.
  virtual bool on_fork_requested(const ForkRequested& message, const rpc::PeerSession& asker,
                                 const caf::strong_actor_ptr& child) = 0;
  /// The child of a parked request gave up at its deadline or ended, so it needs no reply.
  virtual void asker_gone(const ForkId& fork, const rpc::PeerSession& session) = 0;
};

/// What the actor of a fork uses of its worker. Threads: any, all methods; none blocks.
class UserRRefPorts {
 public:
  virtual ~UserRRefPorts() = default;
  /// The owner counts the fork, or the reference has failed: what waits for it learns which.
  virtual void user_confirmed(ForkId id, Result<void> outcome) = 0;
  /// The actor of the fork is ending.
  virtual void user_ending(ForkId id) = 0;
  /// Returns whether the start has ended (SE-27). From then on a worker without a session is lost for good.
  virtual bool start_is_over() const noexcept = 0;
  /// Asks that life of the owner's worker to count the fork, and makes `child`, the fork's actor, reachable there.
  /// Returns the session in which it asked; none if there is none with that life.
  virtual std::optional<rpc::PeerSession> send_fork_request(const caf::strong_actor_ptr& child,
                                                            const ForkRequested& request, const WorkerLife& owner) = 0;
};

}  // namespace caftan::actors
