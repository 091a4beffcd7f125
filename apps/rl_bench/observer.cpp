#include "rl_bench/observer.hpp"

#include <ATen/ops/empty.h>

#include <chrono>

#include "caftan/caftan.hpp"
#include "rl_bench/agent.hpp"
#include "rl_bench/state_size.hpp"

namespace caftan::rl_bench {
namespace {

at::Tensor random_state(const std::vector<std::int64_t>& sizes, rl::Pcg64& random) {
  at::Tensor state = at::empty(sizes, at::kFloat);
  float* values = state.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < state.numel(); ++i) values[i] = static_cast<float>(random.uniform());
  return state;
}

}  // namespace

Observer::Observer(RoleContext& context) : random_(context.seed("states")) {}

Result<std::vector<double>> Observer::run_episode(RRef<Agent> agent, EpisodeOrder order) {
  const auto sizes = parse_state_size(order.state_size);
  if (!sizes) return sizes.error();
  std::vector<double> latencies;
  for (std::int64_t step = 0; step < order.steps; ++step) {
    const at::Tensor state = random_state(*sizes, random_);
    const base::TimePoint sent = clock_.now();
    const std::int64_t sent_ns = std::chrono::nanoseconds(sent.time_since_epoch()).count();
    const auto action = order.batch ? agent.try_rpc_sync<&Agent::select_actions>(state, sent_ns)
                                    : agent.try_rpc_sync<&Agent::select_action>(state);
    if (!action) return action.error();
    latencies.push_back(std::chrono::duration<double>(clock_.now() - sent).count());
  }
  return latencies;
}

}  // namespace caftan::rl_bench
