/// Adds the role types of hybrid data parallelism to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::hybrid_ddp {

/// Registers "hybrid_ddp.master", "hybrid_ddp.ps" and "hybrid_ddp.trainer".
void register_hybrid_ddp(Program& program);

}  // namespace caftan::hybrid_ddp
