/// Tables of settings that the applications share which train a model for images. Without libtorch.
#pragma once

#include <cstdint>
#include <string>

#include "image_data/config.hpp"

namespace caftan::image_training {

struct OptimizerConfig {
  enum class Name { sgd, adam };

  Name name = Name::sgd;
  double lr = 0.03;
  double momentum = 0;

  static void settings(auto& s, OptimizerConfig& c) {
    s("name", c.name, "the algorithm").one_of({{"sgd"}, {"adam"}});
    s("lr", c.lr, "learning rate; a resumed training goes on with the one given here").greater_than(0).at_most(1000);
    s("momentum", c.momentum, "only read with sgd; a resumed training goes on with the one given here")
        .at_least(0)
        .less_than(1);
  }
};

/// What the role types of trainers read.
struct TrainerConfig {
  image_data::DataConfig data{};
  std::int64_t batch = 32;

  static void settings(auto& s, TrainerConfig& c) {
    s("data", c.data, "the images that the model learns from");
    s("batch", c.batch, "images of a gradient").range(1, 65536);
  }
};

/// Returns a choice as the file has it.
std::string name_of(image_data::DataConfig::Name name);
std::string name_of(OptimizerConfig::Name name);

}  // namespace caftan::image_training
