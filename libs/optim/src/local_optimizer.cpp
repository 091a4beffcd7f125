#include "caftan/optim/local_optimizer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "caftan/tensor/torch_errors.hpp"
#include "gradient_check.hpp"
#include "lbfgs.hpp"
#include "option_check.hpp"
#include "state_format.hpp"
#include "update.hpp"

namespace caftan::optim {

Result<void> LocalOptimizer::check_group(const ParameterGroup& group, Numbers& numbers) {
  if (Result<void> fits = check_options(group.algorithm); !fits) return fits;
  if (const Custom* custom = std::get_if<Custom>(&group.algorithm); custom && !custom->code) {
    return Error(Errc::bad_arguments, "the algorithm " + custom->name + " has no code: set Custom::code");
  }
  for (const at::Tensor& parameter : group.parameters) {
    const std::size_t number = numbers.size();
    if (Result<void> fits = check_parameter(parameter, group.algorithm, number); !fits) return fits;
    const auto [known, is_new] = numbers.emplace(parameter.unsafeGetTensorImpl(), number);
    if (!is_new) {
      return Error(Errc::bad_arguments, describe(parameter, number) + " is the same tensor as parameter " +
                                            std::to_string(known->second) +
                                            ", it would be stepped twice: list each parameter once");
    }
  }
  return {};
}

void LocalOptimizer::append(ParameterGroup group) {
  for (at::Tensor& parameter : group.parameters) {
    group_of_.push_back(static_cast<std::uint32_t>(algorithms_.size()));
    parameters_.push_back(std::move(parameter));
  }
  if (!initial_lrs_.empty()) initial_lrs_.push_back(learning_rate(group.algorithm));
  algorithms_.push_back(std::move(group.algorithm));
  states_.resize(parameters_.size());
}

Result<LocalOptimizer> LocalOptimizer::make(std::vector<ParameterGroup> groups) {
  LocalOptimizer optimizer;
  Numbers numbers;
  for (ParameterGroup& group : groups) {
    if (Result<void> fits = check_group(group, numbers); !fits) return fits.error();
    optimizer.append(std::move(group));
  }
  if (optimizer.parameters_.empty()) return Error(Errc::bad_arguments, "an optimizer without a parameter");
  if (Result<void> fits = optimizer.check_one_group(); !fits) return fits.error();
  if (needs_closure(optimizer.algorithms_[0])) optimizer.lbfgs_ = std::make_shared<Lbfgs>(optimizer.parameters_);
  return optimizer;
}

/// Checks what LBFGS wants of all groups together.
Result<void> LocalOptimizer::check_one_group() const {
  const auto is_closed = [](const Algorithm& algorithm) { return needs_closure(algorithm); };
  if (std::none_of(algorithms_.begin(), algorithms_.end(), is_closed)) return {};
  if (algorithms_.size() > 1) {
    return Error(Errc::bad_arguments, "LBFGS steps all parameters together: give it one group, here are " +
                                          std::to_string(algorithms_.size()));
  }
  for (std::size_t i = 1; i < parameters_.size(); ++i) {
    if (parameters_[i].scalar_type() == parameters_[0].scalar_type()) continue;
    return Error(Errc::bad_arguments, describe(parameters_[i], i) + " has another dtype than " +
                                          describe(parameters_[0], 0) + ": LBFGS steps parameters of one dtype");
  }
  return {};
}

Result<void> LocalOptimizer::add_param_group(ParameterGroup group) {
  if (group.parameters.empty()) return Error(Errc::bad_arguments, "a group without a parameter");
  Numbers numbers;
  for (const at::Tensor& parameter : parameters_) numbers.emplace(parameter.unsafeGetTensorImpl(), numbers.size());
  if (Result<void> fits = check_group(group, numbers); !fits) return fits;
  if (needs_closure(group.algorithm) || needs_closure(algorithms_[0])) {
    return Error(Errc::bad_arguments,
                 "LBFGS steps one group: none can be added to it, and it is none that can be added");
  }
  append(std::move(group));
  return {};
}

std::map<std::string, at::Tensor> LocalOptimizer::state(std::size_t parameter) const {
  std::map<std::string, at::Tensor> named;
  if (lbfgs_ && parameter == 0 && lbfgs_->memory().iterations > 0) {
    const LbfgsMemory& memory = lbfgs_->memory();
    named = {{"d", memory.direction}, {"prev_flat_grad", memory.previous_gradient}, {"H_diag", memory.scale}};
    std::vector<at::Tensor> gradients, moves, inverses;
    for (const LbfgsMemory::Change& change : memory.history) {
      gradients.push_back(change.gradient);
      moves.push_back(change.parameter);
      inverses.push_back(change.inverse);
    }
    if (gradients.empty()) return named;
    named.emplace("old_dirs", at::stack(gradients));
    named.emplace("old_stps", at::stack(moves));
    named.emplace("ro", at::stack(inverses));
    return named;
  }
  if (states_[parameter].steps == 0) return named;
  const SlotNames names = slots_of(algorithms_[group_of_[parameter]]);
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    const at::Tensor& tensor = states_[parameter].tensors[slot];
    if (!names[slot].empty() && tensor.defined()) named.emplace(names[slot], tensor);
  }
  return named;
}

Result<void> LocalOptimizer::check_gradients(std::span<const at::Tensor> gradients) const {
  if (half_stepped_) {
    return Error(Errc::bad_arguments, "an earlier step failed half-way: load a saved state and its parameters first");
  }
  if (gradients.size() != parameters_.size()) {
    return Error(Errc::bad_arguments, std::to_string(gradients.size()) + " gradients for " +
                                          std::to_string(parameters_.size()) + " parameters");
  }
  for (const Algorithm& algorithm : algorithms_) {
    if (Result<void> fits = check_options(algorithm); !fits) return fits;
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Algorithm& algorithm = algorithms_[group_of_[i]];
    Result<void> fits = check_gradient(gradients[i], parameters_[i], states_[i], algorithm, i);
    if (!fits) return fits;
  }
  return {};
}

Result<void> LocalOptimizer::prepare(std::span<const at::Tensor> gradients) {
  if (lbfgs_) {
    return Error(Errc::bad_arguments, "LBFGS evaluates the loss several times in a step: pass a closure to step");
  }
  if (Result<void> fits = check_gradients(gradients); !fits) return fits;
  return tensor::catch_torch(Errc::limit_exceeded, [&]() -> Result<void> {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Algorithm& algorithm = algorithms_[group_of_[i]];
      if (!gradients[i].defined() || !needs_allocation(algorithm, states_[i])) continue;
      allocate_state(algorithm, parameters_[i], gradients[i], states_[i]);
    }
    return {};
  });
}

Result<void> LocalOptimizer::update(std::span<const std::size_t> which, std::span<const at::Tensor> gradients) {
  std::vector<std::vector<Stepped>> lists(algorithms_.size());
  for (const std::size_t i : which) {
    if (gradients[i].defined()) lists[group_of_[i]].push_back({&parameters_[i], &gradients[i], &states_[i]});
  }
  Result<void> done = tensor::catch_torch(Errc::remote_exception, [&]() -> Result<void> {
    const at::NoGradGuard no_grad;
    for (std::size_t group = 0; group < lists.size(); ++group) update_group(algorithms_[group], lists[group]);
    return {};
  });
  half_stepped_ = half_stepped_ || !done;
  for (const std::vector<Stepped>& list : lists) {
    // The version rises after a failure, too: values that a recorded graph has saved for its backward pass may have
    // changed.
    for (const Stepped& s : list) s.parameter->unsafeGetTensorImpl()->bump_version();
  }
  return done;
}

Result<std::size_t> LocalOptimizer::step(std::span<const at::Tensor> gradients) {
  if (Result<void> prepared = prepare(gradients); !prepared) return prepared.error();
  std::vector<std::size_t> all(parameters_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (Result<void> done = update(all, gradients); !done) return done.error();
  std::size_t stepped = 0;
  for (const at::Tensor& gradient : gradients) stepped += gradient.defined() ? 1 : 0;
  return stepped;
}

// ---- steps by a closure

bool LocalOptimizer::is_searching() const noexcept { return lbfgs_ && lbfgs_->is_open(); }

void LocalOptimizer::raise_versions(std::span<const std::size_t> which) const {
  for (const std::size_t i : which) parameters_[i].unsafeGetTensorImpl()->bump_version();
}

Result<bool> LocalOptimizer::search(double loss, std::span<const at::Tensor> gradients) {
  if (!lbfgs_) {
    return Error(Errc::bad_arguments,
                 std::string(name_of(algorithms_[0])) + " is not searched for: a step evaluates the loss once");
  }
  if (Result<void> fits = check_gradients(gradients); !fits) return fits.error();
  return tensor::catch_torch(Errc::remote_exception, [&]() -> Result<bool> {
    if (!lbfgs_->is_open()) lbfgs_->begin(std::get<LBFGS>(algorithms_[0]));
    return lbfgs_->advance(loss, gradients);
  });
}

Result<void> LocalOptimizer::move(std::span<const std::size_t> which) {
  Result<void> moved = tensor::catch_torch(Errc::remote_exception, [&]() -> Result<void> {
    lbfgs_->move(which);
    return {};
  });
  raise_versions(which);
  return moved;
}

void LocalOptimizer::end_search() noexcept { lbfgs_->end(); }

Result<void> LocalOptimizer::roll_back(std::span<const std::size_t> which) {
  Result<void> back = tensor::catch_torch(Errc::remote_exception, [&]() -> Result<void> {
    lbfgs_->roll_back(which);
    return {};
  });
  half_stepped_ = half_stepped_ || !back;
  raise_versions(which);
  return back;
}

void LocalOptimizer::forget_search() noexcept { lbfgs_->forget(); }

Result<double> LocalOptimizer::step(const LocalClosure& closure) {
  if (!lbfgs_) {
    Result<LocalEvaluation> value = closure();
    if (!value) return value.error();
    if (const auto stepped = step(value->gradients); !stepped) return stepped.error();
    return value->loss;
  }
  std::vector<std::size_t> all(parameters_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  /// Gives an open step up: also where the closure throws.
  struct Guard {
    LocalOptimizer& optimizer;
    std::span<const std::size_t> all;
    ~Guard() {
      if (!optimizer.is_searching()) return;
      (void)optimizer.roll_back(all);
      optimizer.forget_search();
    }
  } const guard{*this, all};
  std::optional<double> first;
  for (bool wanted = true; wanted;) {
    Result<LocalEvaluation> value = closure();
    if (!value) return value.error();
    if (!first) first = value->loss;
    const Result<bool> more = search(value->loss, value->gradients);
    if (!more) return more.error();
    if (Result<void> moved = move(all); !moved) return moved.error();
    wanted = *more;
  }
  end_search();
  return *first;
}

std::vector<double> LocalOptimizer::initial_lrs() {
  if (initial_lrs_.empty()) initial_lrs_ = lrs();
  return initial_lrs_;
}

Result<wire::Bytes> LocalOptimizer::save() const {
  return write_state({algorithms_, group_of_, states_, initial_lrs_, lbfgs_ ? lbfgs_->memory() : LbfgsMemory()},
                     parameters_);
}

Result<void> LocalOptimizer::load(wire::ByteView bytes) {
  auto saved = read_state(bytes, algorithms_, group_of_, parameters_);
  if (!saved) return saved.error();
  algorithms_ = std::move(saved->algorithms);
  states_ = std::move(saved->states);
  initial_lrs_ = std::move(saved->initial_lrs);
  if (lbfgs_) {
    lbfgs_ = std::make_shared<Lbfgs>(parameters_);
    lbfgs_->set_memory(std::move(saved->lbfgs));
  }
  half_stepped_ = false;
  return {};
}

}  // namespace caftan::optim
