#include "actor_critic/checkpoint.hpp"

#include <algorithm>

#include "caftan/tensor/packed.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::actor_critic {
namespace {

constexpr const char* kState = "actor_critic.state";
constexpr const char* kParameters = "actor_critic.parameters";
constexpr const char* kOptimizer = "actor_critic.optimizer";

/// The record kState.
struct StateRecord {
  Facts facts{};
  LearningState state{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& facts& state;
  }
};

struct Found {
  agents::AgentFile file;
  StateRecord state;
};

Error at_file(const std::filesystem::path& file, const Error& error) {
  return {error.code(), file.string() + ": " + error.text()};
}

std::string first_difference(const Facts& checkpoint, const Facts& here) {
  for (const auto& [key, wanted] : here) {
    const auto there = std::ranges::find(checkpoint, key, [](const auto& fact) { return fact.first; });
    if (there == checkpoint.end()) return key + " is not known of it";
    if (there->second != wanted) return key + " = " + there->second + ", here it is " + wanted;
  }
  return {};
}

Result<Found> find_fitting(const std::filesystem::path& path, const Facts& here, std::int64_t max_frames) {
  auto file = agents::read_agent(path, agents::Wanted::newest);
  if (!file) return file.error();
  const auto bytes = file->file.find(kState);
  if (!bytes) return at_file(file->path, bytes.error());
  auto state = wire::decode<StateRecord>(*bytes);
  if (!state) return at_file(file->path, state.error());
  if (const std::string other = first_difference(state->facts, here); !other.empty()) {
    return at_file(file->path,
                   Error(Errc::invalid_config, "a checkpoint of another training: " + other +
                                                   "; take over its value, or leave resume out to start anew"));
  }
  if (state->state.frames > max_frames) {
    return at_file(file->path, Error(Errc::invalid_config, "it stands at frame " + std::to_string(state->state.frames) +
                                                               ", beyond max_frames = " + std::to_string(max_frames) +
                                                               "; raise max_frames, or resume from an earlier one"));
  }
  for (const char* const record : {kParameters, kOptimizer}) {
    if (const auto there = file->file.find(record); !there) return at_file(file->path, there.error());
  }
  return Found{*std::move(file), *std::move(state)};
}

}  // namespace

Facts facts_of(const LearnerConfig& config, std::uint64_t seed) {
  return {{"environment", config.environment},
          {"action_repeat", std::to_string(config.action_repeat)},
          {"network.hidden", std::to_string(config.network.hidden)},
          {"network.layers", std::to_string(config.network.layers)},
          {"network.normalize", config.network.normalize ? "true" : "false"},
          {"optimizer.name", config.optimizer.name == OptimizerConfig::Name::adam ? "adam" : "rmsprop"},
          {"the seed of the parameters", std::to_string(seed)}};
}

Result<Snapshot> snapshot_of(const LearnerConfig& config, std::uint64_t seed, const Learning& learning) {
  Snapshot snapshot{.agent = {.environment = {config.environment, config.action_repeat},
                              .shape = learning.shape(),
                              .weights = learning.weights(),
                              .step = learning.state().frames,
                              .step_name = "frames"}};
  auto state = wire::encode(StateRecord{facts_of(config, seed), learning.state()});
  if (!state) return state.error();
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : learning.parameters()) parameters.push_back(parameter.detach());
  auto packed = tensor::pack_tensors(parameters);
  if (!packed) return packed.error();
  auto optimizer = learning.optimizer().save();
  if (!optimizer) return optimizer.error();
  snapshot.records.push_back({kState, *std::move(state)});
  snapshot.records.push_back({kParameters, *std::move(packed)});
  snapshot.records.push_back({kOptimizer, *std::move(optimizer)});
  return snapshot;
}

Result<std::int64_t> check_checkpoint(const std::filesystem::path& path, const Facts& here, std::int64_t max_frames) {
  const auto found = find_fitting(path, here, max_frames);
  if (!found) return found.error();
  return found->state.state.frames;
}

Result<Checkpoint> read_checkpoint(const std::filesystem::path& path, const Facts& here, std::int64_t max_frames) {
  const auto found = find_fitting(path, here, max_frames);
  if (!found) return found.error();
  auto parameters = tensor::unpack_tensors(*found->file.file.find(kParameters));
  if (!parameters) return at_file(found->file.path, parameters.error());
  Checkpoint checkpoint{.path = found->file.path, .state = found->state.state, .parameters = *std::move(parameters)};
  wire::append(checkpoint.optimizer, *found->file.file.find(kOptimizer));
  return checkpoint;
}

}  // namespace caftan::actor_critic
