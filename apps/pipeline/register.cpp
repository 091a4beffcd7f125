#include "pipeline/register.hpp"

#include "caftan/caftan.hpp"
#include "pipeline/master.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/stage_module.hpp"

namespace caftan::pipeline {

void register_pipeline(Program& program) {
  program.role<Master>("pipeline.master")
      .doc("Trains a model that is cut into stages, in micro-batches that overlap; has the images and the loss")
      .uses<Stage>("stages", at_least(2));
  program.role<Stage>("pipeline.stage").doc("Has one stage of a pipeline's model");
  program.provide(register_stages);
}

}  // namespace caftan::pipeline
