/// Reports, before anything starts, what a pipeline needs and its machine lacks, or what its settings cannot do
/// together. Makes no tensors: a launcher must not have threads yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "pipeline/config.hpp"

namespace caftan::pipeline {

/// The stream of the model's first parameters.
inline constexpr const char* kParameterStream = "parameters";

/// @param stages  workers that the file has for stages
/// @param seed  of the stream kParameterStream of the master
std::vector<app::MissingRequirement> find_missing(const MasterConfig& config, std::size_t stages, std::uint64_t seed);

/// Returns what has to be the same when a training goes on: not the cuts, the schedule and the micro-batches.
checkpoints::Facts facts_of(const MasterConfig& config, std::uint64_t seed);

/// Checks that each stage has a worker of its own.
/// Errors: invalid_config (fewer or more workers than stages).
Result<void> check_workers(const MasterConfig& config, std::size_t stages);

}  // namespace caftan::pipeline
