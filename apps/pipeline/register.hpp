/// Adds the pipeline's role types to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::pipeline {

/// Registers "pipeline.master" and "pipeline.stage".
void register_pipeline(Program& program);

}  // namespace caftan::pipeline
