#include "caftan/optim/algorithms.hpp"

#include <ATen/core/LegacyTypeDispatch.h>

#include <type_traits>

#include "algorithms/adadelta.hpp"
#include "algorithms/adagrad.hpp"
#include "algorithms/adam.hpp"
#include "algorithms/adamax.hpp"
#include "algorithms/custom.hpp"
#include "algorithms/rmsprop.hpp"
#include "algorithms/rprop.hpp"
#include "algorithms/sgd.hpp"
#include "update.hpp"

namespace caftan::optim {
namespace {

template <class Options>
using TraitOf = AlgorithmTrait<std::remove_cvref_t<Options>>;

}  // namespace

std::string_view name_of(const Algorithm& algorithm) noexcept {
  return std::visit([](const auto& options) { return TraitOf<decltype(options)>::name(options); }, algorithm);
}

double learning_rate(const Algorithm& algorithm) noexcept {
  return std::visit([](const auto& options) { return options.lr; }, algorithm);
}

void set_learning_rate(Algorithm& algorithm, double lr) noexcept {
  std::visit([lr](auto& options) { options.lr = lr; }, algorithm);
}

Result<void> check_options(const Algorithm& algorithm) {
  return std::visit([](const auto& options) { return TraitOf<decltype(options)>::check(options); }, algorithm);
}

SlotNames slots_of(const Algorithm& algorithm) {
  return std::visit([](const auto& options) { return TraitOf<decltype(options)>::slots(options); }, algorithm);
}

bool takes_complex(const Algorithm& algorithm) noexcept {
  return std::visit([]([[maybe_unused]] const auto& options) { return TraitOf<decltype(options)>::kTakesComplex; },
                    algorithm);
}

bool keeps_sparse(const Algorithm& algorithm) noexcept {
  return std::visit([]([[maybe_unused]] const auto& options) { return TraitOf<decltype(options)>::kKeepsSparse; },
                    algorithm);
}

std::string gradient_refusal(const Algorithm& algorithm, const at::Tensor& gradient, const ParameterState& state) {
  return std::visit([&](const auto& options) { return TraitOf<decltype(options)>::refusal(options, gradient, state); },
                    algorithm);
}

void allocate_state(const Algorithm& algorithm, const at::Tensor& parameter, const at::Tensor& gradient,
                    ParameterState& state) {
  std::visit([&](const auto& options) { TraitOf<decltype(options)>::allocate(options, parameter, gradient, state); },
             algorithm);
}

void update_group(const Algorithm& algorithm, std::span<const Stepped> list) {
  // Nothing here is recorded by autograd; without autograd's dispatch each operation takes half the time.
  const at::AutoDispatchBelowADInplaceOrView below;
  std::visit([list](const auto& options) { TraitOf<decltype(options)>::step(options, list); }, algorithm);
  for (const Stepped& s : list) ++s.state->steps;
}

}  // namespace caftan::optim
