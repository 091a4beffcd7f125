#include <torch/csrc/distributed/autograd/engine/dist_engine.h>

#include "reference.hpp"

namespace caftan::reference {

void Context::backward(const std::vector<at::Tensor>& roots, bool retain_graph) const {
  torch::distributed::autograd::DistEngine::getInstance().execute(id_, roots, retain_graph);
}

}  // namespace caftan::reference
