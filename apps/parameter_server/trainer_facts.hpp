/// What a checkpoint has to know of a trainer's settings.
#pragma once

#include <cstdint>
#include <string>

#include "parameter_server/config.hpp"

namespace caftan::parameter_server {

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

}  // namespace caftan::parameter_server
