/// The role type "rl_bench.agent": chooses actions on random states, and measures how long that takes.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/batch.hpp"
#include "rl_bench/config.hpp"
#include "rl_bench/dummy_policy.hpp"
#include "rl_bench/messages.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::rl_bench {

class Agent {
 public:
  using Config = AgentConfig;

  /// Errors (thrown): invalid_config (a state_size that is none, which `requirements` finds before).
  Agent(RoleContext& context, Config config);

  /// Finds a state_size that is none: an error; a batch.max_size that is not the one used: a note.
  static std::vector<app::MissingRequirement> requirements(const Config& config, const app::RolePlace& place);

  /// Returns what the agent was made with.
  AgentFacts facts() const;

  /// Chooses an action. Its latency is that of the choice alone.
  /// Errors: bad_arguments (a state of another shape).
  Result<int> select_action(const at::Tensor& state);

  /// Chooses an action for each request with one forward pass. A state of another shape fails its own caller alone. The
  /// batch's latency begins when its first request was sent, on the clock that all processes of one machine share: so
  /// it has the way of that request, too, which the original's latency has not.
  /// @param requests  the state, and when it was sent, in nanoseconds of base::SteadyClock
  std::vector<Result<int>> select_actions(const Batch<at::Tensor, std::int64_t>& requests);

  /// Returns what was measured since the last call, and forgets it.
  AgentTimes take_times();

 private:
  void record(base::TimePoint first, std::int64_t size);

  Config config_;
  DummyPolicy policy_;
  AgentTimes times_;
  base::SteadyClock clock_;
};

}  // namespace caftan::rl_bench
