#include "image_training/algorithm.hpp"

namespace caftan::image_training {

optim::Algorithm algorithm_of(const OptimizerConfig& config) {
  if (config.name == OptimizerConfig::Name::adam) return optim::Adam{.lr = config.lr};
  return optim::SGD{.lr = config.lr, .momentum = config.momentum};
}

}  // namespace caftan::image_training
