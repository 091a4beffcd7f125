#include "image_training/trainer_facts.hpp"

namespace caftan::image_training {

TrainerFacts facts_of(const TrainerConfig& config) {
  return {.images = name_of(config.data.name),
          .partition = config.data.partition == image_data::Partition::full ? "full" : "split",
          .batch = config.batch};
}

void append_facts(checkpoints::Facts& facts, const std::vector<TrainerFacts>& trainers) {
  for (std::size_t i = 0; i < trainers.size(); ++i) {
    const std::string of = " of trainer " + std::to_string(i);
    facts.emplace_back("batch" + of, std::to_string(trainers[i].batch));
    facts.emplace_back("data.name" + of, trainers[i].images);
    facts.emplace_back("data.partition" + of, trainers[i].partition);
  }
}

}  // namespace caftan::image_training
