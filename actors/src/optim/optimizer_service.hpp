/// The service by which peers make optimizers on this worker, for parameters of a DistributedOptimizer that this worker
/// owns. The actor of an optimizer, an `OptimizerActor`, ends with the last reference to the optimizer.
#pragma once

#include "service/service.hpp"

namespace caftan::actors {

class OptimizerService final : public Service {
 public:
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
};

}  // namespace caftan::actors
