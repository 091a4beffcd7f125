/// Adds the role types of the parameter server to a program.
#pragma once

namespace caftan {
class Program;
}

namespace caftan::parameter_server {

/// Registers "parameter_server.server", "parameter_server.trainer" and the class of their model.
void register_parameter_server(Program& program);

}  // namespace caftan::parameter_server
