/// The role type "actor_critic.actor": plays its environments with a copy of the policy, sends the learner what it has
/// played, and takes new weights. What it does between two sets of weights is in player.hpp; here are the calls.
#pragma once

#include <memory>

#include "actor_critic/config.hpp"
#include "actor_critic/messages.hpp"
#include "agents/environments.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/vector_environment.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/rref.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::actor_critic {

class Learner;

class Actor {
 public:
  using Config = ActorConfig;

  Actor(RoleContext& context, Config config);

  /// Makes the environments. Errors: those of make_environments.
  Result<EnvironmentFacts> open(agents::EnvironmentChoice choice);

  /// Plays until the learner says that the training is over. Before the first trajectory, and then for each one, it
  /// asks for weights; it waits for the reply that is `order.ahead` trajectories old. Errors: bad_arguments (not
  /// opened), cancelled (the run stops), those of the environments and of calls.
  Result<void> play(RRef<Learner> learner, PlayOrder order);

 private:
  Result<Weights> wait(Future<Weights> asked) const;

  RoleContext& context_;
  Config config_;
  std::unique_ptr<rl::VectorEnvironment> environments_{};  ///< from `open` to `play`
};

}  // namespace caftan::actor_critic
