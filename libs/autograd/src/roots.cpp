#include "roots.hpp"

#include <ATen/core/Formatting.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <sstream>
#include <string>
#include <utility>

namespace caftan::autograd {
namespace {

Error differs(Errc code, const std::string& name, const char* what, const auto& got, const auto& expected) {
  std::ostringstream text;
  text << name << " has " << what << ' ' << got << ", its tensor has " << expected;
  return Error(code, text.str());
}

Result<at::Tensor> gradient_of_root(const at::Tensor& root, const at::Tensor& given, const torch::autograd::Edge& edge,
                                    const std::string& name) {
  if (given.defined()) {
    Result<void> fits = check_gradient(given, edge, Errc::bad_arguments, "the gradient of " + name);
    if (!fits) return fits.error();
    return given;
  }
  if (root.numel() != 1) {
    std::ostringstream text;
    text << name << " has sizes " << root.sizes() << ": backward needs its gradient, only a scalar has one by itself";
    return Error(Errc::bad_arguments, text.str());
  }
  if (!c10::isFloatingType(root.scalar_type())) {
    return Error(Errc::bad_arguments, name + " is complex: backward needs its gradient");
  }
  return at::ones_like(root, at::MemoryFormat::Contiguous);
}

}  // namespace

Result<Roots> make_roots(std::span<const at::Tensor> tensors, std::span<const at::Tensor> gradients) {
  if (tensors.empty()) return Error(Errc::bad_arguments, "backward needs at least one root");
  if (!gradients.empty() && gradients.size() != tensors.size()) {
    return Error(Errc::bad_arguments, std::to_string(gradients.size()) + " gradients for " +
                                          std::to_string(tensors.size()) + " roots: give one each, or none at all");
  }
  Roots roots;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = "root " + std::to_string(i);
    if (!tensors[i].defined()) return Error(Errc::bad_arguments, name + " is undefined");
    if (!tensors[i].requires_grad()) {
      return Error(Errc::bad_arguments,
                   name + " requires no grad: nothing it was made of does, or it was made without grad mode");
    }
    torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(tensors[i]);
    Result<at::Tensor> gradient =
        gradient_of_root(tensors[i], gradients.empty() ? at::Tensor() : gradients[i], edge, name);
    if (!gradient) return gradient.error();
    roots.edges.push_back(std::move(edge));
    roots.gradients.push_back(*std::move(gradient));
  }
  return roots;
}

Result<void> check_gradient(const at::Tensor& gradient, const torch::autograd::Edge& edge, Errc code,
                            const std::string& name) {
  const torch::autograd::InputMetadata& forward = edge.function->input_metadata(edge.input_nr);
  if (!forward.is_same_shape(gradient)) {
    return differs(code, name, "sizes", gradient.sizes(), forward.shape_as_dim_vector());
  }
  if (const std::optional<at::ScalarType> dtype = forward.grad_dtype(); dtype && gradient.scalar_type() != *dtype) {
    return differs(code, name, "dtype", gradient.scalar_type(), *dtype);
  }
  if (gradient.device() != forward.device()) {
    return differs(code, name, "device", gradient.device(), forward.device());
  }
  // Dense and sparse COO go together, as in libtorch: lookups give dense tables sparse gradients, sums give sparse
  // tensors dense ones.
  const auto is_mixable = [](at::Layout layout) { return layout == at::kStrided || layout == at::kSparse; };
  if (gradient.layout() != forward.layout() && !(is_mixable(gradient.layout()) && is_mixable(forward.layout()))) {
    return differs(code, name, "layout", gradient.layout(), forward.layout());
  }
  return {};
}

}  // namespace caftan::autograd
