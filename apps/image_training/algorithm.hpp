/// The algorithm that a table `optimizer` names.
#pragma once

#include "caftan/optim/algorithms.hpp"
#include "image_training/config.hpp"

namespace caftan::image_training {

optim::Algorithm algorithm_of(const OptimizerConfig& config);

}  // namespace caftan::image_training
