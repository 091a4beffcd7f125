#include "gradient_check.hpp"

#include <c10/core/ScalarType.h>

#include <string>

namespace caftan::optim {
namespace {

std::string sizes_of(const at::Tensor& tensor) {
  std::string text = "[";
  for (const std::int64_t size : tensor.sizes()) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::string kind_of(const at::Tensor& tensor) {
  return std::string(c10::toString(tensor.scalar_type())) + " " + sizes_of(tensor) +
         (tensor.is_sparse() ? " sparse" : "");
}

Error refuse(Errc code, const at::Tensor& parameter, std::size_t number, const std::string& why) {
  return Error(code, describe(parameter, number) + " " + why);
}

/// Refuses, before the step, sparse gradients that torch::optim's own arithmetic cannot add.
Result<void> check_sparse(const SGD& sgd, const at::Tensor& parameter, const ParameterState& state,
                          std::size_t number) {
  if (sgd.weight_decay != 0) {
    return refuse(Errc::unsupported, parameter, number,
                  "has a sparse gradient, which SGD takes only without weight_decay: use weight_decay 0 for its group");
  }
  if (sgd.nesterov && state.steps > 0 && !state.tensors[0].is_sparse()) {
    return refuse(Errc::unsupported, parameter, number,
                  "has a sparse gradient after dense ones, which nesterov cannot add to its dense momentum");
  }
  return {};
}

Result<void> check_dense(const SGD& sgd, const at::Tensor& parameter, const ParameterState& state, std::size_t number) {
  if (sgd.momentum != 0 && state.steps > 0 && state.tensors[0].is_sparse()) {
    return refuse(Errc::unsupported, parameter, number,
                  "has a dense gradient after sparse ones, which cannot be added to its sparse momentum");
  }
  return {};
}

template <bool Decoupled>
Result<void> check_sparse(const AdamFamily<Decoupled>&, const at::Tensor& parameter, const ParameterState&,
                          std::size_t number) {
  return refuse(Errc::unsupported, parameter, number,
                std::string("has a sparse gradient: ") + (Decoupled ? "AdamW" : "Adam") +
                    " does not support sparse gradients; use SGD for its group");
}

template <bool Decoupled>
Result<void> check_dense(const AdamFamily<Decoupled>&, const at::Tensor&, const ParameterState&, std::size_t) {
  return {};
}

}  // namespace

std::string describe(const at::Tensor& parameter, std::size_t number) {
  return "parameter " + std::to_string(number) + " (" + kind_of(parameter) + ")";
}

Result<void> check_parameter(const at::Tensor& parameter, const Algorithm& algorithm, std::size_t number) {
  if (!parameter.defined()) {
    return Error(Errc::bad_arguments, "parameter " + std::to_string(number) + " is an undefined tensor");
  }
  const auto bad = [&](const char* why) { return refuse(Errc::bad_arguments, parameter, number, why); };
  if (!parameter.is_floating_point() && !parameter.is_complex()) return bad("is not of a floating dtype");
  if (parameter.is_inference()) return bad("is an inference tensor: make it outside InferenceMode");
  if (!parameter.requires_grad()) return bad("needs no gradient: call requires_grad_() on it first");
  if (!parameter.is_leaf()) return bad("is the result of operations, not a leaf: pass the tensor it was computed from");
  if (parameter.layout() != at::kStrided)
    return refuse(Errc::unsupported, parameter, number, "is not a strided tensor");
  if (parameter.is_complex() && !std::holds_alternative<SGD>(algorithm)) {
    return refuse(Errc::unsupported, parameter, number,
                  "is complex, which " + std::string(name_of(algorithm)) + " cannot step: use SGD for its group");
  }
  return {};
}

Result<void> check_gradient(const at::Tensor& gradient, const at::Tensor& parameter, const ParameterState& state,
                            const Algorithm& algorithm, std::size_t number) {
  const bool fits = gradient.sizes() == parameter.sizes() && gradient.scalar_type() == parameter.scalar_type() &&
                    gradient.device() == parameter.device() &&
                    (gradient.layout() == at::kStrided || gradient.is_sparse());
  if (!fits) return refuse(Errc::bad_arguments, parameter, number, "has a gradient of " + kind_of(gradient));
  return std::visit(
      [&](const auto& options) {
        return gradient.is_sparse() ? check_sparse(options, parameter, state, number)
                                    : check_dense(options, parameter, state, number);
      },
      algorithm);
}

}  // namespace caftan::optim
