/// Reports, before anything starts, what a trainer needs and its machine lacks or has in an unsuitable form.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "config.hpp"

namespace caftan::rnn_lm {

/// The facts beside its config by which a trainer's requirements are judged.
struct TrainerPlace {
  std::uint64_t parameter_seed = 0;  ///< as TrainerSeeds::parameters
  std::int64_t memory = 0;           ///< of the machine, bytes
};

/// Returns bytes of RAM and swap together.
std::int64_t memory_of_this_machine();

/// Reads the text and, to resume, all files of a checkpoint. Makes no tensors: a launcher must not have threads yet.
/// Where the checkpoint's learning rate is another one than the config's, a note says which one is used.
std::vector<app::MissingRequirement> find_missing(const TrainerConfig& config, const TrainerPlace& place);

}  // namespace caftan::rnn_lm
