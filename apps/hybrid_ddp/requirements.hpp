/// Reports, before anything starts, what a training lacks on its machine, and what its checkpoint has to have in common
/// with it. Makes no tensors: a launcher must not have threads yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "checkpoints/model_checkpoint.hpp"
#include "hybrid_ddp/config.hpp"

namespace caftan::hybrid_ddp {

inline constexpr const char* kParameterStream = "parameters";

/// Returns the backend as a file names it.
std::string name_of(BackendName backend);

/// The settings of a trainer that decide how a training goes on.
struct TrainerFacts {
  std::int64_t words = 0, per_class = 0, batch = 0;
};

checkpoints::Facts facts_of(const MasterConfig& config, const TrainerFacts& trainer, std::size_t trainers,
                            std::uint64_t seed);

/// @param seed  of the parameters
std::vector<app::MissingRequirement> find_missing(const MasterConfig& config,
                                                  const std::vector<const TrainerConfig*>& trainers,
                                                  std::uint64_t seed);

}  // namespace caftan::hybrid_ddp
