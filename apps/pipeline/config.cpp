#include "pipeline/config.hpp"

namespace caftan::pipeline {

std::string name_of(ModelName model) {
  if (model == ModelName::mlp) return "mlp";
  return model == ModelName::resnet18 ? "resnet18" : "resnet50";
}

std::string name_of(ScheduleName schedule) {
  return schedule == ScheduleName::one_forward_one_backward ? "1f1b" : "all_forward_then_backward";
}

}  // namespace caftan::pipeline
