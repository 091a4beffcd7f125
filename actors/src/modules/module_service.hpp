/// Makes this worker one that can own modules: a peer that has made one here makes its actor, which `ModuleActor` is.
/// It ends with the last reference to its control.
#pragma once

#include "service/service.hpp"

namespace caftan::actors {

class ModuleService final : public Service {
 public:
  void register_with(Registry& registry, remote::MessageRegistry& messages) override;
};

}  // namespace caftan::actors
