/// What the trainers of one model need that learns from images, as `check` reports it before anything starts, and what
/// is wrong with their settings. Makes no tensors: a launcher must not have threads yet.
#pragma once

#include <string>
#include <vector>

#include "caftan/app/role_type.hpp"
#include "caftan/base/result.hpp"
#include "image_data/image_set.hpp"
#include "image_training/config.hpp"
#include "models/model_name.hpp"

namespace caftan::image_training {

/// Returns what is wrong with the images of one trainer on this machine.
std::vector<app::MissingRequirement> find_missing(const TrainerConfig& config);

/// Appends why a model cannot learn the images of its trainers.
void check_images(models::ModelName model, const std::vector<const TrainerConfig*>& trainers,
                  std::vector<app::MissingRequirement>& missing);

/// Appends which trainer has fewer images than one batch. The trainers stand in the order of their numbers.
void check_batches(const std::vector<const TrainerConfig*>& trainers, std::vector<app::MissingRequirement>& missing);

/// Checks the shape of the images that the trainers have read. @param source  where they come from, for the text
/// Errors: invalid_config.
Result<void> check_shape(models::ModelName model, const image_data::ImageShape& shape, const std::string& source);

}  // namespace caftan::image_training
