#include "cartpole_batch/register.hpp"

#include "batch_settings/batch_limits.hpp"
#include "caftan/app/place.hpp"
#include "caftan/caftan.hpp"
#include "cartpole_batch/agent.hpp"
#include "cartpole_batch/observer.hpp"

namespace caftan::cartpole_batch {

void register_cartpole_batch(Program& program) {
  program.role<Observer>("cartpole_batch.observer")
      .doc("Steps one environment, a fixed number of steps a call, and asks the agent for actions")
      .method<&Observer::play>("play");
  program.role<Agent>("cartpole_batch.agent")
      .doc("Learns CartPole from observers whose requests for actions it answers in batches")
      .uses<Observer>("observers", at_least(1))
      .method<&Agent::select_action>("select_action", brief)
      .batched<&Agent::select_actions>("select_actions", [](const AgentConfig& config, const app::RolePlace& place) {
        return batch_settings::limits_of(config.batch, app::count_used(place, "observers"));
      });
}

}  // namespace caftan::cartpole_batch
