#include "reduction.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <vector>

#include "caftan/base/fnv1a.hpp"

namespace caftan::collectives {
namespace {

constexpr std::size_t kMostNamed = 4;  // tensors that a text names one by one

std::string form_of(const at::Tensor& tensor) {
  std::string text = c10::toString(tensor.scalar_type());
  text += " [";
  for (std::int64_t i = 0; i < tensor.dim(); ++i) text += (i > 0 ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

std::string forms_of(const Tensors& tensors) {
  std::string all;
  for (const at::Tensor& tensor : tensors) all += (all.empty() ? "" : ", ") + form_of(tensor);
  if (tensors.size() <= kMostNamed) return all;
  return std::to_string(tensors.size()) + " tensors (" + form_of(tensors.front()) + ", ...; " +
         std::to_string(base::fnv1a(all)) + ")";
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && !tensor.is_quantized() && tensor.is_cpu();
}

at::Tensor plain_values(const at::Tensor& tensor) { return tensor.detach().resolve_conj().resolve_neg(); }

}  // namespace

std::string describe(const Operation& operation, const Tensors& tensors) {
  using Kind = Operation::Kind;
  switch (operation.kind) {
    case Kind::all_reduce:
      return std::string("all_reduce ") + (operation.reduction == Reduction::sum ? "sum" : "mean") + " of " +
             forms_of(tensors);
    case Kind::broadcast:
      return "broadcast from rank " + std::to_string(operation.root) + " of " + forms_of(tensors);
    case Kind::all_gather:
      return "all_gather";
    case Kind::barrier:
      return "barrier";
  }
  return "unknown";
}

Result<void> check_dense(const Tensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) return Error(Errc::bad_arguments, "tensor " + std::to_string(i) + " is undefined");
    if (!is_plain(tensors[i])) {
      return Error(Errc::unsupported, "tensor " + std::to_string(i) +
                                          " is sparse, quantized or not on the CPU; members exchange dense tensors of "
                                          "the CPU");
    }
  }
  return {};
}

Result<void> check_reduced(const Tensors& tensors, Reduction reduction) {
  if (tensors.empty()) return Error(Errc::bad_arguments, "all_reduce of no tensor");
  if (auto dense = check_dense(tensors); !dense) return dense;
  const at::ScalarType dtype = tensors.front().scalar_type();
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() == dtype) continue;
    return Error(Errc::bad_arguments, std::string("all_reduce of tensors of ") + c10::toString(dtype) + " and " +
                                          c10::toString(tensor.scalar_type()) + ": one call reduces one dtype");
  }
  const bool has_mean = c10::isFloatingType(dtype) || c10::isComplexType(dtype);
  if (dtype == at::kBool || (reduction == Reduction::mean && !has_mean)) {
    return Error(Errc::bad_arguments, std::string("all_reduce: there is no ") +
                                          (reduction == Reduction::sum ? "sum" : "mean") + " of " +
                                          c10::toString(dtype));
  }
  return {};
}

at::Tensor flatten(const Tensors& tensors) {
  const at::NoGradGuard no_grad;
  if (tensors.size() == 1) return plain_values(tensors.front()).reshape({-1}).clone();
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(plain_values(tensor).reshape({-1}));
  return at::cat(flat);
}

Tensors unflatten(const at::Tensor& flat, const Tensors& like) {
  Tensors tensors;
  tensors.reserve(like.size());
  std::int64_t at = 0;
  for (const at::Tensor& one : like) {
    tensors.push_back(flat.narrow(0, at, one.numel()).view(one.sizes()));
    at += one.numel();
  }
  return tensors;
}

Tensors copies(const Tensors& tensors) {
  const at::NoGradGuard no_grad;
  Tensors all;
  all.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) all.push_back(plain_values(tensor).contiguous().clone());
  return all;
}

at::Tensor chunk_of(const at::Tensor& flat, std::size_t index, std::size_t count) {
  const auto number = static_cast<std::int64_t>(index);
  const std::int64_t size = flat.numel() / static_cast<std::int64_t>(count);
  const std::int64_t longer = flat.numel() % static_cast<std::int64_t>(count);
  const std::int64_t start = number * size + std::min(number, longer);
  return flat.narrow(0, start, size + (number < longer ? 1 : 0));
}

at::Tensor reduce(std::span<const at::Tensor> values, Reduction reduction) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = values.size() == 1 ? values[0].clone() : at::add(values[0], values[1]);
  for (std::size_t i = 2; i < values.size(); ++i) sum.add_(values[i]);
  if (reduction == Reduction::mean) sum.div_(static_cast<double>(values.size()));
  return sum;
}

bool have_form_of(const Tensors& tensors, const Tensors& like) {
  const auto same = [](const at::Tensor& a, const at::Tensor& b) {
    return a.defined() && is_plain(a) && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
  };
  return std::equal(tensors.begin(), tensors.end(), like.begin(), like.end(), same);
}

}  // namespace caftan::collectives
