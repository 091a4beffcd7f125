/// What a later run needs to go on with a training bit for bit, in the file of its agent (agents/agent_file.hpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "actor_critic/config.hpp"
#include "actor_critic/learning.hpp"
#include "agents/agent_file.hpp"
#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::actor_critic {

/// What has to be the same when a training goes on: keys of the file, and what they stand for.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// @param seed  of the learner's parameters
Facts facts_of(const LearnerConfig& config, std::uint64_t seed);

/// A training as it was between two updates.
struct Snapshot {
  agents::Agent agent{};
  std::vector<wire::CheckpointRecord> records{};
};

/// Errors: limit_exceeded (no memory).
Result<Snapshot> snapshot_of(const LearnerConfig& config, std::uint64_t seed, const Learning& learning);

struct Checkpoint {
  std::filesystem::path path{};
  LearningState state{};
  std::vector<at::Tensor> parameters{};
  wire::Bytes optimizer{};
};

/// Returns the frames of a checkpoint. Makes no tensors: a launcher must not have threads yet.
/// @param path  a file, or a folder with checkpoints or of a run: the newest
/// Errors, naming the file: those of read_agent, invalid_config (of another training; beyond max_frames),
///   malformed_payload (no file of a learner).
Result<std::int64_t> check_checkpoint(const std::filesystem::path& path, const Facts& here, std::int64_t max_frames);

/// Reads a checkpoint. Errors: as check_checkpoint.
Result<Checkpoint> read_checkpoint(const std::filesystem::path& path, const Facts& here, std::int64_t max_frames);

}  // namespace caftan::actor_critic
