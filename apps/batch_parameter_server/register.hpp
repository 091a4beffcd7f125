/// Adds the role types of the batch-updating parameter server to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::batch_parameter_server {

/// Registers "batch_parameter_server.server" and "batch_parameter_server.trainer".
void register_batch_parameter_server(Program& program);

}  // namespace caftan::batch_parameter_server
