/// What the actors of references ask of their worker: `OwnerRRefPorts` and `UserRRefPorts`, which `RRefHost`
/// implements.
#pragma once

#include <memory>
#include <optional>

#include <caf/actor_control_block.hpp>

#include "caftan/base/executor.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/internal/fork_table.hpp"
#include "rref/rref_messages.hpp"

namespace caftan::actors {

/// For the actor of a fork. Threads: any, all methods; none blocks.
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
