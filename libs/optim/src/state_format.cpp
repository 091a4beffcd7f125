#include "state_format.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "gradient_check.hpp"
#include "state_parts.hpp"
#include "update.hpp"

namespace caftan::optim {
namespace {

Error another_model(const std::string& difference) {
  return Error(Errc::bad_arguments, "the saved optimizer is of another model: " + difference);
}

/// Returns the lowest version that can hold the state.
StateVersion version_for(const SavedOptimizer& optimizer) {
  if (optimizer.lbfgs.evaluations > 0) return StateVersion::lbfgs;
  for (std::size_t i = 0; i < optimizer.states.size(); ++i) {
    const Algorithm& algorithm = optimizer.algorithms[optimizer.group_of[i]];
    const ParameterState& state = optimizer.states[i];
    for (std::size_t slot = 0; slot < kStateSlots; ++slot) {
      const bool expected = momentum(algorithm).value_or(0) != 0;
      if (state.steps > 0 && is_late(algorithm, slot) && state.tensors[slot].defined() != expected) {
        return StateVersion::late_tensors;
      }
    }
  }
  return optimizer.initial_lrs.empty() ? StateVersion::first : StateVersion::initial_rates;
}

Result<void> check_algorithms(std::span<const Algorithm> saved, std::span<const Algorithm> algorithms) {
  if (saved.size() != algorithms.size()) {
    return another_model(std::to_string(saved.size()) + " parameter groups, here are " +
                         std::to_string(algorithms.size()));
  }
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    if (saved[i].index() != algorithms[i].index() || name_of(saved[i]) != name_of(algorithms[i])) {
      return another_model("group " + std::to_string(i) + " is stepped by " + std::string(name_of(saved[i])) +
                           ", here by " + std::string(name_of(algorithms[i])));
    }
    if (const Result<void> fits = check_options(saved[i]); !fits) {
      return malformed_state("has impossible options: " + fits.error().text());
    }
  }
  return {};
}

Result<void> check_parameters(const StateParts& parts, std::span<const std::uint32_t> group_of,
                              std::span<const at::Tensor> parameters) {
  if (parts.pieces.size() != parameters.size()) {
    return another_model(std::to_string(parts.pieces.size()) + " parameters, here are " +
                         std::to_string(parameters.size()));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const SavedEntry& entry = parts.pieces[i].entry;
    if (at::IntArrayRef(entry.sizes) != parameters[i].sizes() ||
        entry.dtype != static_cast<std::int8_t>(parameters[i].scalar_type())) {
      return another_model("it has other sizes or another dtype for " + describe(parameters[i], i));
    }
    if (entry.group != group_of[i]) return another_model(describe(parameters[i], i) + " is in another group");
  }
  return {};
}

/// Returns whether a saved tensor can be one of the state tensors of `parameter`.
bool fits(const at::Tensor& tensor, const at::Tensor& parameter, const Algorithm& algorithm) {
  return tensor.sizes() == parameter.sizes() && tensor.scalar_type() == parameter.scalar_type() &&
         (tensor.layout() == at::kStrided || (keeps_sparse(algorithm) && tensor.is_sparse()));
}

/// Returns which state tensors a parameter has after a step.
std::array<bool, kStateSlots> needed(const Algorithm& algorithm, const ParameterState& state) {
  const SlotNames names = slots_of(algorithm);
  std::array<bool, kStateSlots> used{};
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    used[slot] = !names[slot].empty() && (!is_late(algorithm, slot) || state.tensors[slot].defined());
  }
  return used;
}

/// Returns whether the tensors that a saved parameter has can be those of the algorithm.
bool has_expected(const SavedEntry& entry, const Algorithm& algorithm) {
  const SlotNames names = slots_of(algorithm);
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    const bool expected = entry.steps > 0 && !names[slot].empty();
    if (entry.present[slot] != expected && !(expected && is_late(algorithm, slot))) return false;
  }
  return true;
}

/// Gives the Custom algorithms that were read from a file the code of the optimizer's own Custom algorithms.
void lend_code(std::span<Algorithm> to, std::span<const Algorithm> from) {
  for (std::size_t i = 0; i < std::min(to.size(), from.size()); ++i) {
    Custom* const custom = std::get_if<Custom>(&to[i]);
    const Custom* const here = std::get_if<Custom>(&from[i]);
    if (custom && here && custom->name == here->name) custom->code = here->code;
  }
}

Result<LbfgsMemory> read_lbfgs(const StateParts& parts, std::span<const at::Tensor> parameters) {
  LbfgsMemory memory;
  const std::vector<at::Tensor>& tensors = parts.lbfgs_tensors;
  const LBFGS* const lbfgs = std::get_if<LBFGS>(&parts.algorithms[0]);
  if (!lbfgs && parts.lbfgs.evaluations == 0 && tensors.empty()) return memory;
  std::int64_t elements = 0;
  for (const at::Tensor& parameter : parameters) elements += parameter.numel();
  bool fit = lbfgs && static_cast<std::int64_t>(parts.lbfgs.changes) <= lbfgs->history_size;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i];
    fit = fit && tensor.defined() && tensor.layout() == at::kStrided &&
          tensor.scalar_type() == parameters[0].scalar_type() &&
          (i % 3 == 2 ? tensor.dim() == 0 : tensor.dim() == 1 && tensor.numel() == elements);
  }
  if (!fit) return malformed_state("has a memory that LBFGS cannot have here");
  memory.iterations = parts.lbfgs.iterations;
  memory.evaluations = parts.lbfgs.evaluations;
  memory.t = parts.lbfgs.t;
  memory.previous_loss = parts.lbfgs.previous_loss;
  if (tensors.empty()) return memory;
  memory.direction = tensors[0];
  memory.previous_gradient = tensors[1];
  memory.scale = tensors[2];
  for (std::size_t i = 3; i < tensors.size(); i += 3) {
    memory.history.push_back({tensors[i], tensors[i + 1], tensors[i + 2]});
  }
  return memory;
}

}  // namespace

Result<wire::Bytes> write_state(const SavedOptimizer& optimizer, std::span<const at::Tensor> parameters) {
  StateParts parts;
  parts.version = version_for(optimizer);
  parts.algorithms = optimizer.algorithms;
  parts.initial_lrs = optimizer.initial_lrs;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterState& state = optimizer.states[i];
    StateParts::Piece& piece = parts.pieces.emplace_back();
    piece.entry = {parameters[i].sizes().vec(),
                   static_cast<std::int8_t>(parameters[i].scalar_type()),
                   optimizer.group_of[i],
                   state.steps,
                   {}};
    // A parameter that was never stepped has no values in its state, even if memory was allocated for its first step.
    if (state.steps > 0) piece.entry.present = needed(optimizer.algorithms[optimizer.group_of[i]], state);
    piece.tensors = state.tensors;
  }
  const LbfgsMemory& lbfgs = optimizer.lbfgs;
  parts.lbfgs = {lbfgs.iterations, lbfgs.evaluations, lbfgs.t, lbfgs.previous_loss,
                 static_cast<std::uint32_t>(lbfgs.history.size())};
  if (lbfgs.iterations > 0) {
    parts.lbfgs_tensors = {lbfgs.direction, lbfgs.previous_gradient, lbfgs.scale};
    for (const LbfgsMemory::Change& change : lbfgs.history) {
      parts.lbfgs_tensors.insert(parts.lbfgs_tensors.end(), {change.gradient, change.parameter, change.inverse});
    }
  }
  return put_together(parts);
}

Result<SavedOptimizer> read_state(wire::ByteView bytes, std::span<const Algorithm> algorithms,
                                  std::span<const std::uint32_t> group_of, std::span<const at::Tensor> parameters) {
  auto parts = take_apart(bytes);
  if (!parts) return parts.error();
  lend_code(parts->algorithms, algorithms);
  if (Result<void> same = check_algorithms(parts->algorithms, algorithms); !same) return same.error();
  if (Result<void> same = check_parameters(*parts, group_of, parameters); !same) return same.error();
  SavedOptimizer saved{parts->algorithms, {group_of.begin(), group_of.end()}, {}, parts->initial_lrs, LbfgsMemory()};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [entry, tensors] = parts->pieces[i];
    const Algorithm& algorithm = saved.algorithms[entry.group];
    if (!has_expected(entry, algorithm))
      return malformed_state("has the wrong tensors for " + describe(parameters[i], i));
    for (std::size_t slot = 0; slot < kStateSlots; ++slot) {
      if (entry.present[slot] && !fits(tensors[slot], parameters[i], algorithm)) {
        return malformed_state("has no fitting tensor for " + describe(parameters[i], i));
      }
    }
    saved.states.push_back({entry.steps, tensors});
  }
  auto lbfgs = read_lbfgs(*parts, parameters);
  if (!lbfgs) return lbfgs.error();
  saved.lbfgs = *std::move(lbfgs);
  return saved;
}

}  // namespace caftan::optim
