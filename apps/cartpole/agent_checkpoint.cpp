#include "agent_checkpoint.hpp"

#include "agents/agent_file.hpp"

namespace caftan::cartpole {

Result<std::filesystem::path> write_agent_checkpoint(const std::filesystem::path& folder, const Policy& policy,
                                                     const std::string& environment, std::int64_t episode) {
  agents::Agent agent{.environment = {.name = environment},
                      .shape = {.observation = kObservationSize,
                                .hidden = policy.hidden(),
                                .layers = 1,
                                .outputs = kActions,
                                .relu = true},
                      .step = episode,
                      .step_name = "episode"};
  agent.weights.assign(kObservationSize, 0.0F);  // observations are not shifted
  agent.weights.resize(2 * kObservationSize, 1.0F);
  const at::Tensor values = policy.snapshot();
  const auto* const data = values.const_data_ptr<float>();
  agent.weights.insert(agent.weights.end(), data, data + values.numel());
  return agents::write_agent(folder / agents::kCheckpoints, agent, {}, 1);
}

}  // namespace caftan::cartpole
