#include "batch_parameter_server/requirements.hpp"

#include <algorithm>
#include <string>

#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"

namespace caftan::batch_parameter_server {
namespace {

using Kind = app::MissingRequirement::Kind;
using Data = image_data::DataConfig::Name;

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

/// Returns the name of images as the file has it.
std::string name_of(Data name) {
  switch (name) {
    case Data::fashion_mnist:
      return "fashion-mnist";
    case Data::shapes:
      return "shapes";
    default:
      return "noise";
  }
}

/// Appends which trainer has no whole batch.
void check_batches(const std::vector<const TrainerConfig*>& trainers, std::vector<app::MissingRequirement>& missing) {
  for (std::size_t i = 0; i < trainers.size(); ++i) {
    const TrainerConfig& trainer = *trainers[i];
    const auto enough = image_data::check_batch({.images = image_data::most_images(trainer.data),
                                                 .batch = trainer.batch,
                                                 .trainer = static_cast<std::uint32_t>(i),
                                                 .trainers = static_cast<std::uint32_t>(trainers.size()),
                                                 .partition = trainer.data.partition});
    if (enough) continue;
    missing.push_back(
        {.keys = {"model"}, .text = "trainer " + std::to_string(i) + ": " + enough.error().text(), .kind = Kind::file});
    return;
  }
}

}  // namespace

std::uint32_t quorum_of(const ServerConfig& config, std::size_t trainers) {
  return config.quorum.value_or(static_cast<std::uint32_t>(trainers));
}

BatchLimits limits_of(const ServerConfig& config, std::size_t trainers) {
  // Without a quorum a run with fewer gradients could only wait for the others: the longest time that there is.
  return {.max_size = std::max<std::size_t>(trainers, 1),
          .max_wait = config.straggler_timeout.value_or(std::chrono::hours(1))};
}

TrainerFacts facts_of(const TrainerConfig& config) {
  return {.images = name_of(config.data.name),
          .partition = config.data.partition == image_data::Partition::full ? "full" : "split",
          .batch = config.batch};
}

image_training::Facts facts_of(const ServerConfig& config, const std::vector<TrainerFacts>& trainers,
                               std::uint64_t seed) {
  image_training::Facts facts{
      {"model", models::to_string(config.model)},
      {"trainers", std::to_string(trainers.size())},
      {"optimizer.name", config.optimizer.name == image_training::OptimizerConfig::Name::adam ? "adam" : "sgd"},
      {"the seed of the parameters", std::to_string(seed)}};
  for (std::size_t i = 0; i < trainers.size(); ++i) {
    const std::string of = " of trainer " + std::to_string(i);
    facts.emplace_back("batch" + of, std::to_string(trainers[i].batch));
    facts.emplace_back("data.name" + of, trainers[i].images);
    facts.emplace_back("data.partition" + of, trainers[i].partition);
  }
  return facts;
}

std::vector<app::MissingRequirement> find_missing(const ServerConfig& config,
                                                  const std::vector<const TrainerConfig*>& trainers,
                                                  std::uint64_t seed) {
  std::vector<app::MissingRequirement> missing;
  check_quorum(config, trainers.size(), missing);
  const bool has_noise =
      std::ranges::any_of(trainers, [](const TrainerConfig* trainer) { return trainer->data.name == Data::noise; });
  if (config.model == models::ModelName::convnet && has_noise) {
    missing.push_back({.keys = {"model"},
                       .text =
                           "convnet takes grey images of 28x28 pixels, and a trainer has data.name = \"noise\", which "
                           "are colour images of 64x64; take resnet18 or resnet50, or other images",
                       .kind = Kind::file});
  }
  for (const TrainerConfig* const trainer : trainers) {
    if (trainer->data.name == trainers.front()->data.name) continue;
    missing.push_back({.keys = {"model"},
                       .text = "its trainers have different images (" + name_of(trainers.front()->data.name) + ", " +
                               name_of(trainer->data.name) + "), and one model cannot learn both",
                       .kind = Kind::file});
    break;
  }
  check_batches(trainers, missing);
  if (!config.resume) return missing;
  std::vector<TrainerFacts> facts;
  for (const TrainerConfig* const trainer : trainers) facts.push_back(facts_of(*trainer));
  const auto step =
      image_training::check_checkpoint(*config.resume, facts_of(config, facts, seed), config.rounds, "rounds");
  if (!step) missing.push_back({.keys = {"resume", "rounds"}, .text = step.error().text()});
  return missing;
}

std::vector<app::MissingRequirement> find_missing(const TrainerConfig& config) {
  return image_data::find_missing(config.data, "data");
}

}  // namespace caftan::batch_parameter_server
