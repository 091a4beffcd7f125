#include "gradient_check.hpp"

#include <c10/core/ScalarType.h>

#include <string>

#include "update.hpp"

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
  if (parameter.is_complex() && !takes_complex(algorithm)) {
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
  const std::string refusal = gradient_refusal(algorithm, gradient, state);
  if (!refusal.empty()) return refuse(Errc::unsupported, parameter, number, refusal);
  return {};
}

}  // namespace caftan::optim
