/// Reports, before anything starts, what a server or a trainer needs and its machine lacks, or what their settings
/// cannot do together.
#pragma once

#include <cstdint>
#include <vector>

#include "batch_parameter_server/config.hpp"
#include "caftan/app/role_type.hpp"
#include "caftan/rpc/batch.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "image_training/trainer_facts.hpp"

namespace caftan::batch_parameter_server {

/// The stream of the model's first parameters.
inline constexpr const char* kParameterStream = "parameters";

/// Makes no tensors: a launcher must not have threads yet.
/// @param trainers  the config of each trainer, in the order of their numbers
/// @param seed  of the stream kParameterStream of the server
std::vector<app::MissingRequirement> find_missing(const ServerConfig& config,
                                                  const std::vector<const image_training::TrainerConfig*>& trainers,
                                                  std::uint64_t seed);

/// Returns what has to be the same when a training goes on.
checkpoints::Facts facts_of(const ServerConfig& config, const std::vector<image_training::TrainerFacts>& trainers,
                            std::uint64_t seed);

/// Returns when the server takes gradients: those of all trainers together, or with a quorum what has come.
BatchLimits limits_of(const ServerConfig& config, std::size_t trainers);

/// Returns how many gradients make a step. Precondition: find_missing found nothing.
std::uint32_t quorum_of(const ServerConfig& config, std::size_t trainers);

}  // namespace caftan::batch_parameter_server
