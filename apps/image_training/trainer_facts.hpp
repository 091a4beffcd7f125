/// What a checkpoint has to know of a trainer's settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints/model_checkpoint.hpp"
#include "image_training/config.hpp"

namespace caftan::image_training {

struct TrainerFacts {
  std::string images{};     ///< data.name, as the file has it
  std::string partition{};  ///< data.partition
  std::int64_t batch = 0;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& images& partition& batch;
  }
};

TrainerFacts facts_of(const TrainerConfig& config);

/// Appends what has to be the same of each trainer when a training goes on.
/// @param trainers  in the order of their numbers
void append_facts(checkpoints::Facts& facts, const std::vector<TrainerFacts>& trainers);

}  // namespace caftan::image_training
