#include "caftan/optim/local_optimizer.hpp"

#include <ATen/core/grad_mode.h>

#include <numeric>
#include <string>
#include <utility>

#include "caftan/tensor/torch_errors.hpp"
#include "gradient_check.hpp"
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
  return optimizer;
}

Result<void> LocalOptimizer::add_param_group(ParameterGroup group) {
  if (group.parameters.empty()) return Error(Errc::bad_arguments, "a group without a parameter");
  Numbers numbers;
  for (const at::Tensor& parameter : parameters_) numbers.emplace(parameter.unsafeGetTensorImpl(), numbers.size());
  if (Result<void> fits = check_group(group, numbers); !fits) return fits;
  append(std::move(group));
  return {};
}

std::map<std::string, at::Tensor> LocalOptimizer::state(std::size_t parameter) const {
  std::map<std::string, at::Tensor> named;
  if (states_[parameter].steps == 0) return named;
  const SlotNames names = slots_of(algorithms_[group_of_[parameter]]);
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    const at::Tensor& tensor = states_[parameter].tensors[slot];
    if (!names[slot].empty() && tensor.defined()) named.emplace(names[slot], tensor);
  }
  return named;
}

Result<void> LocalOptimizer::prepare(std::span<const at::Tensor> gradients) {
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
    // Also after a failure: the values that a recorded graph has saved for its backward pass may have changed.
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

std::vector<double> LocalOptimizer::initial_lrs() {
  if (initial_lrs_.empty()) initial_lrs_ = lrs();
  return initial_lrs_;
}

Result<wire::Bytes> LocalOptimizer::save() const {
  return write_state({algorithms_, group_of_, states_, initial_lrs_}, parameters_);
}

Result<void> LocalOptimizer::load(wire::ByteView bytes) {
  auto saved = read_state(bytes, algorithms_, group_of_, parameters_);
  if (!saved) return saved.error();
  algorithms_ = std::move(saved->algorithms);
  states_ = std::move(saved->states);
  initial_lrs_ = std::move(saved->initial_lrs);
  half_stepped_ = false;
  return {};
}

}  // namespace caftan::optim
