#include "batch_parameter_server/requirements.hpp"

#include <algorithm>
#include <string>

#include "image_training/requirements.hpp"

namespace caftan::batch_parameter_server {
namespace {

using Kind = app::MissingRequirement::Kind;
using image_training::TrainerConfig;
using image_training::TrainerFacts;

/// Appends what is wrong with the quorum.
void check_quorum(const ServerConfig& config, std::size_t trainers, std::vector<app::MissingRequirement>& missing) {
  if (config.quorum.has_value() != config.straggler_timeout.has_value()) {
    missing.push_back({.keys = {"quorum", "straggler_timeout"},
                       .text =
                           "quorum and straggler_timeout stand together: how many gradients make a step, and how long "
                           "they wait for more",
                       .kind = Kind::file});
  } else if (config.quorum && *config.quorum > trainers) {
    missing.push_back({.keys = {"quorum"},
                       .text = "quorum is " + std::to_string(*config.quorum) + ", there are " +
                               std::to_string(trainers) + " trainers",
                       .kind = Kind::file});
  }
}

}  // namespace

std::uint32_t quorum_of(const ServerConfig& config, std::size_t trainers) {
  return config.quorum.value_or(static_cast<std::uint32_t>(trainers));
}

BatchLimits limits_of(const ServerConfig& config, std::size_t trainers) {
  // Without a quorum a run with fewer gradients could only wait for the others: the longest time that there is. With
  // one, Rounds says how long a round waits.
  using base::Duration;
  return {.max_size = std::max<std::size_t>(trainers, 1),
          .max_wait = config.quorum ? Duration(std::chrono::milliseconds(1)) : Duration(std::chrono::hours(1))};
}

checkpoints::Facts facts_of(const ServerConfig& config, const std::vector<TrainerFacts>& trainers, std::uint64_t seed) {
  checkpoints::Facts facts{{"model", models::to_string(config.model)},
                           {"trainers", std::to_string(trainers.size())},
                           {"optimizer.name", name_of(config.optimizer.name)},
                           {"the seed of the parameters", std::to_string(seed)}};
  image_training::append_facts(facts, trainers);
  return facts;
}

std::vector<app::MissingRequirement> find_missing(const ServerConfig& config,
                                                  const std::vector<const TrainerConfig*>& trainers,
                                                  std::uint64_t seed) {
  std::vector<app::MissingRequirement> missing;
  check_quorum(config, trainers.size(), missing);
  image_training::check_images(config.model, trainers, missing);
  image_training::check_batches(trainers, missing);
  if (!config.resume) return missing;
  std::vector<TrainerFacts> facts;
  for (const TrainerConfig* const trainer : trainers) facts.push_back(facts_of(*trainer));
  const auto step =
      checkpoints::check_checkpoint(*config.resume, facts_of(config, facts, seed), config.rounds, "rounds");
  if (!step) missing.push_back({.keys = {"resume", "rounds"}, .text = step.error().text()});
  return missing;
}

}  // namespace caftan::batch_parameter_server
