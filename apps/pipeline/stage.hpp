/// The role type "pipeline.stage": a worker for one stage of a pipeline, whose module the master makes there.
#pragma once

#include "pipeline/config.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::pipeline {

/// Marks a worker as one for a stage, so that the master finds the worker: the stage itself is a StageModule.
class Stage {
 public:
  using Config = StageConfig;

  Stage(RoleContext& /*context*/, Config /*config*/) {}
};

}  // namespace caftan::pipeline
