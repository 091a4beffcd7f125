/// The role type "rl_bench.observer": sends random states to the agent, and measures how long its replies take.
#pragma once

#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rl/random.hpp"
#include "caftan/rpc/rref.hpp"
#include "rl_bench/messages.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::rl_bench {

class Agent;

class Observer {
 public:
  explicit Observer(RoleContext& context);

  /// Asks the agent for actions, one after the other, each on a new random state.
  /// @return the seconds from each request to its reply, [steps]
  /// Errors: those of the calls to the agent; invalid_config (a size that is none).
  Result<std::vector<double>> run_episode(RRef<Agent> agent, EpisodeOrder order);

 private:
  rl::Pcg64 random_;
  base::SteadyClock clock_;
};

}  // namespace caftan::rl_bench
