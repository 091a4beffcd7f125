#include "register.hpp"

#include "agent.hpp"
#include "caftan/caftan.hpp"
#include "observer.hpp"

namespace caftan::cartpole {

void register_cartpole(Program& program) {
  program.role<Observer>("cartpole.observer")
      .doc("Steps one environment and asks the agent for actions")
      .method<&Observer::environment>("environment")
      .method<&Observer::run_episode>("run_episode")
      .method<&Observer::rollout>("rollout")
      .method<&Observer::evaluate>("evaluate");
  program.role<Agent>("cartpole.agent")
      .doc("Learns CartPole by REINFORCE from its observers")
      .uses<Observer>("observers", at_least(1))
      .method<&Agent::select_action>("select_action", brief)
      .method<&Agent::report_reward>("report_reward", brief)
      .method<&Agent::step>("step", brief);
}

}  // namespace caftan::cartpole
