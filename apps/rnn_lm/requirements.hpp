/// What a trainer would not find on its machine, or find unsuitable there: reported before anything starts.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "config.hpp"

namespace caftan::rnn_lm {

/// What a trainer is asked about beside its config.
struct TrainerPlace {
  std::uint64_t parameter_seed = 0;  ///< as TrainerSeeds::parameters
  std::int64_t memory = 0;           ///< of the machine, bytes
};

/// Returns bytes of RAM and swap together.
std::int64_t memory_of_this_machine();

/// Reads the text and, to resume, a checkpoint's manifest. Makes no tensors: a launcher must not have threads yet.
std::vector<app::MissingRequirement> find_missing(const TrainerConfig& config, const TrainerPlace& place);

}  // namespace caftan::rnn_lm
