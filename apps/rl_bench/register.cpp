#include "rl_bench/register.hpp"

#include "batch_settings/batch_limits.hpp"
#include "caftan/app/place.hpp"
#include "caftan/caftan.hpp"
#include "rl_bench/agent.hpp"
#include "rl_bench/coordinator.hpp"
#include "rl_bench/observer.hpp"
#include "rl_bench/report_command.hpp"

namespace caftan::rl_bench {

void register_rl_bench(Program& program) {
  program.role<Observer>("rl_bench.observer")
      .doc("Sends random states to the agent and measures how long its replies take")
      .method<&Observer::run_episode>("run_episode");
  program.role<Agent>("rl_bench.agent")
      .doc("Chooses actions on random states, in batches or one by one, and measures how long that takes")
      .uses<Observer>("observers", at_least(1))
      .method<&Agent::facts>("facts", brief)
      .method<&Agent::select_action>("select_action", brief)
      .batched<&Agent::select_actions>("select_actions",
                                       [](const AgentConfig& config, const app::RolePlace& place) {
                                         return batch_settings::limits_of(config.batch,
                                                                          app::count_used(place, "observers"));
                                       })
      .method<&Agent::take_times>("take_times", brief);
  program.role<Coordinator>("rl_bench.coordinator")
      .doc(
          "Measures calls between an agent and observers, as PyTorch's benchmark of RPC for reinforcement learning "
          "does")
      .uses<Agent>("agent")
      .uses<Observer>("observers", at_least(1));
  program.command(kReportUsage, run_report_command);
}

}  // namespace caftan::rl_bench
