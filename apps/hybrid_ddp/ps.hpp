/// The role type "hybrid_ddp.ps": a worker for the embedding. It does nothing by itself: the master makes the module on
/// its worker, and trainers call that.
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
