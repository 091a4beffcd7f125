#include "rl_bench/agent.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "batch_settings/batch_limits.hpp"
#include "caftan/app/place.hpp"
#include "caftan/caftan.hpp"
#include "rl_bench/state_size.hpp"

namespace caftan::rl_bench {

std::vector<app::MissingRequirement> Agent::requirements(const Config& config, const app::RolePlace& place) {
  auto missing = batch_settings::find_missing(config.batch, app::count_used(place, "observers"));
  if (const auto sizes = parse_state_size(config.state_size); !sizes) {
    missing.push_back(
        {.keys = {"state_size"}, .text = sizes.error().message(), .kind = app::MissingRequirement::Kind::file});
  }
  return missing;
}

Agent::Agent(RoleContext& context, Config config)
    : config_(std::move(config)),
      policy_(parse_state_size(config_.state_size).value(), config_.nlayers, config_.out_features,
              context.seed("policy")) {}

AgentFacts Agent::facts() const {
  return {.batch = config_.batch.enabled,
          .state_size = config_.state_size,
          .nlayers = config_.nlayers,
          .out_features = config_.out_features};
}

void Agent::record(base::TimePoint first, std::int64_t size) {
  times_.latency.push_back(std::chrono::duration<double>(clock_.now() - first).count());
  times_.size.push_back(size);
}

Result<int> Agent::select_action(const at::Tensor& state) {
  const base::TimePoint start = clock_.now();
  if (auto checked = policy_.check(state); !checked) return checked.error();
  const int action = policy_.choose({state}).front();
  record(start, 1);
  return action;
}

std::vector<Result<int>> Agent::select_actions(const Batch<at::Tensor, std::int64_t>& requests) {
  std::vector<at::Tensor> states;
  std::vector<Result<int>> actions;
  std::int64_t first = std::get<1>(requests[0]);
  for (const auto& [state, sent] : requests) {
    first = std::min(first, sent);
    if (auto checked = policy_.check(state); !checked) {
      actions.emplace_back(checked.error());
    } else {
      states.push_back(state);
      actions.emplace_back(0);  // its place
    }
  }
  if (states.empty()) return actions;
  const std::vector<int> chosen = policy_.choose(states);
  auto next = chosen.begin();
  for (Result<int>& action : actions) {
    if (action) action = *next++;
  }
  record(base::TimePoint(std::chrono::nanoseconds(first)), static_cast<std::int64_t>(states.size()));
  return actions;
}

AgentTimes Agent::take_times() { return std::exchange(times_, {}); }

}  // namespace caftan::rl_bench
