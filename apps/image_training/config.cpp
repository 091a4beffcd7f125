#include "image_training/config.hpp"

namespace caftan::image_training {

std::string name_of(image_data::DataConfig::Name name) {
  switch (name) {
    case image_data::DataConfig::Name::fashion_mnist:
      return "fashion-mnist";
    case image_data::DataConfig::Name::shapes:
      return "shapes";
    default:
      return "noise";
  }
}

std::string name_of(OptimizerConfig::Name name) { return name == OptimizerConfig::Name::adam ? "adam" : "sgd"; }

}  // namespace caftan::image_training
