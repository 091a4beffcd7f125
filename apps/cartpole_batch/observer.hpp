/// The role type "cartpole_batch.observer": plays env steps in its own environment when the agent asks. An observer
/// keeps nothing between calls.
#pragma once

#include <cstdint>

#include "caftan/base/result.hpp"
#include "caftan/rpc/rref.hpp"
#include "cartpole_batch/messages.hpp"
#include "cartpole_batch/play.hpp"
#include "cartpole_learning/observer_config.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::cartpole_batch {

class Agent;

class Observer {
 public:
  using Config = cartpole::ObserverConfig;

  Observer(RoleContext& context, Config config);

  /// Plays exactly as many env steps as ordered, asking the agent for each action.
  /// Errors: those of the calls to the agent; bad_arguments (no step, or an action the environment does not have).
  Result<Play> play(RRef<Agent> agent, PlayOrder order);

 private:
  Config config_;
  std::uint64_t seed_;
};

}  // namespace caftan::cartpole_batch
