#include "observer.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "agent.hpp"
#include "caftan/caftan.hpp"
#include "cartpole_learning/environment.hpp"

namespace caftan::cartpole {
namespace {

double microseconds(base::Duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls the agent in each step: asks for an action, and reports the reward in a call of its own or, with the fused
/// protocol, with the next step.
class CallsToAgent {
 public:
  CallsToAgent(RRef<Agent>& agent, const EpisodeOrder& order, const base::Clock& clock)
      : agent_(agent), order_(order), clock_(clock) {}

  Result<int> select_action(const State& state) {
    const base::TimePoint start = clock_.now();
    auto action = order_.fused ? agent_.try_rpc_sync<&Agent::step>(order_.observer, state, unreported_)
                               : agent_.try_rpc_sync<&Agent::select_action>(order_.observer, state);
    times_us_.push_back(microseconds(clock_.now() - start));
    ++calls_;
    return action;
  }

  /// With the fused protocol nothing is sent: the next step carries the reward.
  Result<void> report_reward(double reward) {
    unreported_ = reward;
    if (order_.fused) return {};
    ++calls_;
    return agent_.try_rpc_sync<&Agent::report_reward>(order_.observer, reward);
  }

  void fill(EpisodeReport& report) {
    report.last_reward = unreported_.value_or(0);
    report.calls = calls_;
    report.call_p50_us = median(times_us_);
  }

 private:
  RRef<Agent>& agent_;
  const EpisodeOrder& order_;
  const base::Clock& clock_;
  std::optional<double> unreported_;
  std::vector<double> times_us_;
  std::int64_t calls_ = 0;
};

/// Rebuilds a policy from its copy. The sizes come from another worker, so they are checked before memory is taken.
Result<Policy> make_policy(const PolicyCopy& copy) {
  if (copy.hidden < 1 || copy.hidden > 65536 || !(copy.dropout >= 0 && copy.dropout < 1)) {
    return Error(Errc::bad_arguments, "a policy needs 1..65536 hidden units and a dropout in 0..<1");
  }
  rl::Pcg64 unused(0);  // all parameters are replaced
  Policy policy(static_cast<std::size_t>(copy.hidden), copy.dropout, unused);
  if (auto loaded = policy.load(copy.parameters); !loaded) return loaded.error();
  return policy;
}

}  // namespace

Observer::Observer(RoleContext& context, Config config) : config_(config), seed_(context.seed("environment")) {}

Result<std::unique_ptr<rl::Environment>> Observer::make_environment() const {
  return rl::make_environment(environment_id(config_));
}

std::uint64_t Observer::start_of(const EpisodeOrder& order) const {
  const bool same = config_.seeding == ObserverConfig::Seeding::same;
  return episode_seed(same ? order.shared_seed : seed_, order.episode);
}

Result<EnvironmentFacts> Observer::environment() {
  auto made = make_environment();
  if (!made) return made.error();
  return EnvironmentFacts{.id = (*made)->spec().id, .solved_at = (*made)->spec().solved_at};
}

Result<EpisodeReport> Observer::run_episode(RRef<Agent> agent, EpisodeOrder order) {
  auto environment = make_environment();
  if (!environment) return environment.error();
  CallsToAgent calls(agent, order, clock_);
  EpisodeReport report;
  const auto first = (*environment)->reset(start_of(order));
  if (!first) return first.error();
  State state = to_state(*first);
  while (report.steps < order.budget) {
    const auto action = calls.select_action(state);
    if (!action) return action.error();
    const auto transition = (*environment)->step(*action);
    if (!transition) return transition.error();
    ++report.steps;
    report.reward += transition->reward;
    if (auto reported = calls.report_reward(transition->reward); !reported) return reported.error();
    if (transition->ended()) break;
    state = to_state(transition->observation);
  }
  calls.fill(report);
  return report;
}

Result<EpisodeRecord> Observer::rollout(EpisodeOrder order, PolicyCopy copy, std::uint64_t stream_seed) {
  auto environment = make_environment();
  if (!environment) return environment.error();
  const auto policy = make_policy(copy);
  if (!policy) return policy.error();
  return roll_out(*policy, **environment, start_of(order), rl::Pcg64(stream_seed), order.budget);
}

Result<std::vector<double>> Observer::evaluate(PolicyCopy copy, std::uint64_t seed, std::int64_t episodes) {
  auto environment = make_environment();
  if (!environment) return environment.error();
  const auto policy = make_policy(copy);
  if (!policy) return policy.error();
  return evaluate_greedily(*policy, **environment, seed, episodes);
}

}  // namespace caftan::cartpole
