/// The service by which peers make modules that this worker owns. The actor of a module, a `ModuleActor`, ends with the
/// last reference to the module's control.
#pragma once

#include "service/service.hpp"

namespace caftan::actors {

class ModuleService final : public Service {
 public:
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
};

}  // namespace caftan::actors
