#include "parameter_server/requirements.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "caftan/base/settings_io.hpp"
#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"

namespace caftan::parameter_server {
namespace {

using Kind = app::MissingRequirement::Kind;
using Data = image_data::DataConfig::Name;
using image_training::OptimizerConfig;

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

/// Appends why the images of the trainers do not do.
void check_images(const ServerConfig& config, const std::vector<const TrainerConfig*>& trainers,
                  std::vector<app::MissingRequirement>& missing) {
  const auto has_noise = [](const TrainerConfig* trainer) { return trainer->data.name == Data::noise; };
  if (config.model == models::ModelName::convnet && std::ranges::any_of(trainers, has_noise)) {
    missing.push_back({.keys = {"model"},
                       .text =
                           "convnet takes grey images of 28x28 pixels, and a trainer has data.name = \"noise\", which "
                           "are colour images of 64x64; take resnet18 or resnet50, or other images",
                       .kind = Kind::file});
  }
  const auto other = std::ranges::find_if(trainers, [&trainers](const TrainerConfig* trainer) {
    return trainer->data.name != trainers.front()->data.name;
  });
  if (other == trainers.end()) return;
  missing.push_back({.keys = {"model"},
                     .text = "its trainers have different images (" + name_of(trainers.front()->data.name) + ", " +
                             name_of((*other)->data.name) + "), and one model cannot learn both",
                     .kind = Kind::file});
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

/// Appends why the training cannot go on from its checkpoint.
void check_resume(const ServerConfig& config, const std::vector<const TrainerConfig*>& trainers, std::uint64_t seed,
                  std::vector<app::MissingRequirement>& missing) {
  if (!config.resume) return;
  std::vector<TrainerFacts> facts;
  for (const TrainerConfig* const trainer : trainers) facts.push_back(facts_of(*trainer));
  const std::int64_t most = config.max_steps.value_or(std::numeric_limits<std::int64_t>::max());
  const auto step = image_training::check_checkpoint(*config.resume, facts_of(config, facts, seed), most, "max_steps");
  if (!step) missing.push_back({.keys = {"resume", "max_steps"}, .text = step.error().text()});
}

}  // namespace

TrainerFacts facts_of(const TrainerConfig& config) {
  return {.images = name_of(config.data.name),
          .partition = config.data.partition == image_data::Partition::full ? "full" : "split",
          .batch = config.batch};
}

image_training::Facts facts_of(const ServerConfig& config, const std::vector<TrainerFacts>& trainers,
                               std::uint64_t seed) {
  image_training::Facts facts{{"model", models::to_string(config.model)},
                              {"consistency.mode", std::string(nn::to_string(config.consistency.mode))},
                              {"optimizer.name", config.optimizer.name == OptimizerConfig::Name::adam ? "adam" : "sgd"},
                              // The saved state of the optimizer has them, and would be stepped with.
                              {"optimizer.lr", format_digits(config.optimizer.lr)},
                              {"optimizer.momentum", format_digits(config.optimizer.momentum)},
                              {"trainers", std::to_string(trainers.size())},
                              {"the seed of the parameters", std::to_string(seed)}};
  for (std::size_t i = 0; i < trainers.size(); ++i) {
    const std::string of = " of trainer " + std::to_string(i);
    facts.emplace_back("batch" + of, std::to_string(trainers[i].batch));
    facts.emplace_back("data.name" + of, trainers[i].images);
    facts.emplace_back("data.partition" + of, trainers[i].partition);
  }
  return facts;
}

optim::Algorithm algorithm_of(const OptimizerConfig& config) {
  if (config.name == OptimizerConfig::Name::adam) return optim::Adam{.lr = config.lr};
  return optim::SGD{.lr = config.lr, .momentum = config.momentum};
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
  check_images(config, trainers, missing);
  check_batches(trainers, missing);
  check_resume(config, trainers, seed, missing);
  return missing;
}

std::vector<app::MissingRequirement> find_missing(const TrainerConfig& config) {
  return image_data::find_missing(config.data, "data");
}

}  // namespace caftan::parameter_server
