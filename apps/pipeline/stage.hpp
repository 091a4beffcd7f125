/// The role type "pipeline.stage": a worker for one stage of a pipeline, whose module the master makes there.
#pragma once

#include "pipeline/config.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::pipeline {

/// It only marks the worker: the stage is a StageModule, and what its methods take turns with.
class Stage {
 public:
  using Config = StageConfig;

  Stage(RoleContext& /*context*/, Config /*config*/) {}
};

}  // namespace caftan::pipeline
