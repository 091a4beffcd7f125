/// Makes this worker one that can own the parameters of a DistributedOptimizer: peers make an optimizer here, and its
/// actor, which `OptimizerActor` is, ends with the last reference to it.
#pragma once

#include "service/service.hpp"

namespace caftan::actors {

class OptimizerService final : public Service {
 public:
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
};

}  // namespace caftan::actors
