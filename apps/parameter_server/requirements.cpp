#include "parameter_server/requirements.hpp"

#include <limits>
#include <string>

#include "image_training/requirements.hpp"

namespace caftan::parameter_server {
namespace {

using Kind = app::MissingRequirement::Kind;
using image_training::TrainerConfig;
using image_training::TrainerFacts;

/// Appends why the training cannot go on from its checkpoint.
void check_resume(const ServerConfig& config, const std::vector<const TrainerConfig*>& trainers, std::uint64_t seed,
                  std::vector<app::MissingRequirement>& missing) {
  if (!config.resume) return;
  std::vector<TrainerFacts> facts;
  for (const TrainerConfig* const trainer : trainers) facts.push_back(facts_of(*trainer));
  const std::int64_t most = config.max_steps.value_or(std::numeric_limits<std::int64_t>::max());
  const auto step = checkpoints::check_checkpoint(*config.resume, facts_of(config, facts, seed), most, "max_steps");
  if (!step) missing.push_back({.keys = {"resume", "max_steps"}, .text = step.error().text()});
}

}  // namespace

checkpoints::Facts facts_of(const ServerConfig& config, const std::vector<TrainerFacts>& trainers, std::uint64_t seed) {
  checkpoints::Facts facts{{"model", models::to_string(config.model)},
                           {"consistency.mode", std::string(nn::to_string(config.consistency.mode))},
                           {"optimizer.name", name_of(config.optimizer.name)},
                           {"trainers", std::to_string(trainers.size())},
                           {"the seed of the parameters", std::to_string(seed)}};
  image_training::append_facts(facts, trainers);
  return facts;
}

std::vector<app::MissingRequirement> find_missing(const ServerConfig& config,
                                                  const std::vector<const TrainerConfig*>& trainers,
                                                  std::uint64_t seed) {
  std::vector<app::MissingRequirement> missing;
  const auto count = static_cast<std::uint32_t>(trainers.size());
  if (const auto possible = nn::check_consistency(config.consistency, count); !possible) {
    missing.push_back({.keys = {"consistency.mode", "consistency"},
                       .text = "consistency: " + possible.error().text(),
                       .kind = Kind::file});
  }
  image_training::check_images(config.model, trainers, missing);
  image_training::check_batches(trainers, missing);
  check_resume(config, trainers, seed, missing);
  return missing;
}

}  // namespace caftan::parameter_server
