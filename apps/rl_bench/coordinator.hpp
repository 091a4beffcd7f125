/// The role type "rl_bench.coordinator": lets the observers play, and reports what agent and observers measured.
#pragma once

#include <stop_token>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/rref.hpp"
#include "rl_bench/config.hpp"
#include "rl_bench/measurement.hpp"
#include "rl_bench/messages.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::rl_bench {

class Agent;
class Observer;

class Coordinator {
 public:
  using Config = CoordinatorConfig;

  Coordinator(RoleContext& context, Config config);

  /// Runs the benchmark and writes benchmark_report.json.
  /// Errors: cancelled (`stop` was requested), io_error, those of calls; without one of its observers it measures
  ///         something else, so the loss of an observer is an error.
  Result<void> run(std::stop_token stop);

 private:
  Result<void> play_episode();
  Result<void> finish();

  RoleContext& context_;
  Config config_;
  RRef<Agent> agent_;
  std::vector<RRef<Observer>> observers_;
  AgentFacts facts_;
  Measurement measured_;
  double seconds_ = 0;  ///< of all episodes
  base::SteadyClock clock_;
};

}  // namespace caftan::rl_bench
