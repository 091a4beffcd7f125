#include "cartpole_batch/observer.hpp"

#include "caftan/caftan.hpp"
#include "caftan/rl/environment.hpp"
#include "cartpole_batch/agent.hpp"
#include "cartpole_learning/environment.hpp"

namespace caftan::cartpole_batch {

Observer::Observer(RoleContext& context, Config config) : config_(config), seed_(context.seed("environment")) {}

Result<Play> Observer::play(RRef<Agent> agent, PlayOrder order) {
  const auto environment = rl::make_environment(cartpole::environment_id(config_));
  if (!environment) return environment.error();
  const bool same = config_.seeding == Config::Seeding::same;
  const PlayOptions options{.seed = cartpole::episode_seed(same ? order.shared_seed : seed_, order.episode),
                            .steps = order.steps,
                            .gamma = order.gamma};
  return cartpole_batch::play(**environment, options, [&](const cartpole::State& state) {
    return order.batched ? agent.try_rpc_sync<&Agent::select_actions>(order.observer, state)
                         : agent.try_rpc_sync<&Agent::select_action>(order.observer, state);
  });
}

}  // namespace caftan::cartpole_batch
