#include "image_training/requirements.hpp"

#include <algorithm>
#include <string>

#include "image_data/batches.hpp"
#include "image_data/data_set.hpp"

namespace caftan::image_training {
namespace {

using Kind = app::MissingRequirement::Kind;
using Data = image_data::DataConfig::Name;

}  // namespace

std::vector<app::MissingRequirement> find_missing(const TrainerConfig& config) {
  return image_data::find_missing(config.data, "data");
}

void check_images(models::ModelName model, const std::vector<const TrainerConfig*>& trainers,
                  std::vector<app::MissingRequirement>& missing) {
  const auto has_noise = [](const TrainerConfig* trainer) { return trainer->data.name == Data::noise; };
  if (model == models::ModelName::convnet && std::ranges::any_of(trainers, has_noise)) {
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

Result<void> check_shape(models::ModelName model, const image_data::ImageShape& shape, const std::string& source) {
  if (model != models::ModelName::convnet || shape.channels == 1) return {};
  return Error(Errc::invalid_config, "convnet takes grey images of 28x28 pixels, not those of " + source);
}

}  // namespace caftan::image_training
