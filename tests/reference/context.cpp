#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/autograd/engine/dist_engine.h>

#include "reference.hpp"

namespace caftan::reference {

namespace autograd = torch::distributed::autograd;

Context::Context() : id_(autograd::DistAutogradContainer::getInstance().newContext()->contextId()) {}
Context::~Context() { autograd::DistAutogradContainer::getInstance().releaseContext(id_); }

void Context::backward(const std::vector<at::Tensor>& roots, bool retain_graph) const {
  autograd::DistEngine::getInstance().execute(id_, roots, retain_graph);
}

at::Tensor Context::gradient(const at::Tensor& leaf) const {
  const auto gradients = autograd::DistAutogradContainer::getInstance().retrieveContext(id_)->getGradients();
  const auto found = gradients.find(leaf);
  return found == gradients.end() ? at::Tensor() : found->value();
}

}  // namespace caftan::reference
