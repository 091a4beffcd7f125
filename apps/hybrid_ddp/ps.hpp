/// The role type "hybrid_ddp.ps": marks the worker on which the master makes the embedding, a module that trainers
/// call.
#pragma once

namespace caftan {
class RoleContext;
}

namespace caftan::hybrid_ddp {

class ParameterServer {
 public:
  explicit ParameterServer(RoleContext&) {}
};

}  // namespace caftan::hybrid_ddp
