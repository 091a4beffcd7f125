#include "caftan/optim/algorithms.hpp"

#include <ATen/core/LegacyTypeDispatch.h>

#include <type_traits>

#include "algorithms/adadelta.hpp"
#include "algorithms/adagrad.hpp"
#include "algorithms/adam.hpp"
#include "algorithms/adamax.hpp"
#include "algorithms/custom.hpp"
#include "algorithms/lbfgs.hpp"
#include "algorithms/rmsprop.hpp"
#include "algorithms/rprop.hpp"
#include "algorithms/sgd.hpp"
#include "update.hpp"

namespace caftan::optim {
namespace {

template <class Options>
using TraitOf = AlgorithmTrait<std::remove_cvref_t<Options>>;

/// Returns where the algorithm keeps its momentum; null where it has none.
template <class Options>
auto* momentum_in(Options& options) noexcept {
  using Momentum = std::conditional_t<std::is_const_v<Options>, const double, double>;
  Momentum* at = nullptr;
  if constexpr (requires { options.momentum; }) {
    at = &options.momentum;
  } else if constexpr (requires { options.betas; }) {
    at = &options.betas.first;
  } else if constexpr (std::is_same_v<std::remove_const_t<Options>, Custom>) {
    if (const auto option = options.options.find("momentum"); option != options.options.end()) at = &option->second;
  }
  return at;
}

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

std::optional<double> momentum(const Algorithm& algorithm) noexcept {
  const double* const at = std::visit([](const auto& options) { return momentum_in(options); }, algorithm);
  return at ? std::optional(*at) : std::nullopt;
}

void set_momentum(Algorithm& algorithm, double momentum) noexcept {
  if (double* const at = std::visit([](auto& options) { return momentum_in(options); }, algorithm)) *at = momentum;
}

Result<void> check_options(const Algorithm& algorithm) {
  return std::visit([](const auto& options) { return TraitOf<decltype(options)>::check(options); }, algorithm);
}

SlotNames slots_of(const Algorithm& algorithm) {
  return std::visit([](const auto& options) { return TraitOf<decltype(options)>::slots(options); }, algorithm);
}

bool needs_closure(const Algorithm& algorithm) noexcept {
  return std::visit(
      []([[maybe_unused]] const auto& options) {
        return requires { TraitOf<decltype(options)>::kNeedsClosure; };
      },
      algorithm);
}

bool takes_complex(const Algorithm& algorithm) noexcept {
  return std::visit([]([[maybe_unused]] const auto& options) { return TraitOf<decltype(options)>::kTakesComplex; },
                    algorithm);
}

bool keeps_sparse(const Algorithm& algorithm) noexcept {
  return std::visit([]([[maybe_unused]] const auto& options) { return TraitOf<decltype(options)>::kKeepsSparse; },
                    algorithm);
}

bool is_late(const Algorithm& algorithm, std::size_t slot) noexcept {
  return std::visit(
      [slot]([[maybe_unused]] const auto& options) {
        if constexpr (requires { TraitOf<decltype(options)>::kLateSlot; }) {
          return TraitOf<decltype(options)>::kLateSlot == slot;
        } else {
          return false;
        }
      },
      algorithm);
}

bool needs_allocation(const Algorithm& algorithm, const ParameterState& state) noexcept {
  if (state.steps == 0) return true;
  for (std::size_t slot = 0; slot < kStateSlots; ++slot) {
    if (is_late(algorithm, slot) && !state.tensors[slot].defined()) return true;
  }
  return false;
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
  std::visit(
      [list](const auto& options) {
        using Trait = TraitOf<decltype(options)>;
        if constexpr (!requires { Trait::kNeedsClosure; }) Trait::step(options, list);
      },
      algorithm);
  for (const Stepped& s : list) ++s.state->steps;
}

}  // namespace caftan::optim
