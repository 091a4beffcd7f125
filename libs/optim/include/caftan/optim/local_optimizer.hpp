/// `LocalOptimizer`: steps parameters of this worker by gradients that are given to it, not by their `.grad`. It keeps
/// the state (momentum, means), checks before it changes anything, and raises the parameters' version counters, so that
/// a backward pass over a graph from before the step is an error instead of a wrong gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/optim/algorithms.hpp"
#include "caftan/optim/learning_rates.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::optim {

class Lbfgs;

/// The loss and its gradients where the parameters are.
struct LocalEvaluation {
  double loss = 0;
  std::vector<at::Tensor> gradients;  ///< one per parameter, undefined where there is none
};
/// Evaluates the loss once. An error ends the step.
using LocalClosure = std::function<Result<LocalEvaluation>()>;

/// Parameters that are stepped with the same options.
struct ParameterGroup {
  std::vector<at::Tensor> parameters;
  Algorithm algorithm;
};

/// The most tensors that an algorithm can keep for a parameter.
inline constexpr std::size_t kStateSlots = 3;

/// What an optimizer remembers of one parameter.
struct ParameterState {
  std::uint64_t steps = 0;  ///< the number of steps in which this parameter had a gradient
  /// One per slot of the algorithm (docs/protocols/optimizer.md); undefined where there is none yet.
  std::array<at::Tensor, kStateSlots> tensors;
};

/// Parameters are numbered through all groups, in the order given. Gradients are always one per parameter in that
/// order; an undefined one means that its parameter is not stepped.
/// Threads: one at a time, none of them reading the parameters while it steps.
/// Source: torch.optim.Optimizer. Differences: gradients are arguments and are never modified, also those of a closure;
/// the same parameter twice is an error.
class LocalOptimizer final : public LearningRates {
 public:
  /// Errors: bad_arguments (no parameter; one that is undefined, no leaf, needs no gradient, is not of a floating
  ///   dtype, is an inference tensor, or comes twice; an option out of range), unsupported (a layout or dtype that the
  ///   algorithm cannot step). The text names the parameter by its number. LBFGS: bad_arguments (more than one group;
  ///   parameters of several dtypes).
  static Result<LocalOptimizer> make(std::vector<ParameterGroup> groups);

  /// Adds a group. Its parameters are numbered after those that are there, its initial rate is its rate now, and
  /// schedules that were made before do not change it.
  /// Errors: as make; nothing has changed then.
  /// Source: torch.optim.Optimizer.add_param_group.
  Result<void> add_param_group(ParameterGroup group);

  std::span<const at::Tensor> parameters() const noexcept { return parameters_; }
  std::size_t groups() const noexcept override { return algorithms_.size(); }
  /// Returns what a group is stepped by, with its options now. Precondition: group < groups().
  const Algorithm& algorithm(std::size_t group) const noexcept { return algorithms_[group]; }
  double lr(std::size_t group) const override { return learning_rate(algorithms_[group]); }
  void set_lr(std::size_t group, double lr) override { set_learning_rate(algorithms_[group], lr); }
  std::optional<double> momentum(std::size_t group) const override { return optim::momentum(algorithms_[group]); }
  void set_momentum(std::size_t group, double momentum) override { optim::set_momentum(algorithms_[group], momentum); }
  std::vector<double> initial_lrs() override;

  /// Returns the state tensors of a parameter by the names that PyTorch's state_dict has for them ("exp_avg"), and none
  /// before its first step; those of LBFGS, which has them for all parameters together, are parameter 0's, the lists of
  /// changes as one tensor each. The tensors change with the next step: clone those that are to stay.
  /// Precondition: parameter < parameters().size().
  std::map<std::string, at::Tensor> state(std::size_t parameter) const;

  /// Checks everything that can be wrong with `gradients` and allocates the state of parameters that are stepped for
  /// the first time; parameters and state keep their values.
  /// Errors: bad_arguments (count, sizes, dtype or device of a gradient; a learning rate or momentum; after a step that
  /// failed half-way),
  ///   unsupported (a sparse gradient where the algorithm takes none), limit_exceeded (no memory).
  Result<void> prepare(std::span<const at::Tensor> gradients);

  /// Steps the parameters `which` (numbers, each at most once).
  /// Precondition: `prepare` of the same gradients succeeded.
  /// Errors: what libtorch throws, as remote_exception; some parameters may have been stepped then, so the optimizer
  ///   refuses every step until a `load`.
  Result<void> update(std::span<const std::size_t> which, std::span<const at::Tensor> gradients);

  /// Prepares, then updates all parameters. Returns how many had a gradient.
  Result<std::size_t> step(std::span<const at::Tensor> gradients);

  /// Steps by a closure, which evaluates the loss where the parameters are then: LBFGS several times, the others once.
  /// Returns the loss of the first evaluation. On an error, also one of the closure, and when the closure throws, the
  /// parameters and the state are those from before the step.
  /// Errors: those of the closure; as step.
  /// Source: torch.optim.Optimizer.step with a closure.
  Result<double> step(const LocalClosure& closure);

  // The same in pieces, of an algorithm that `needs_closure`: `search`, then `move` of all parameters, again and again,
  // until `search` has returned false; then `end_search`. Or, after an error or to give up, `roll_back` of all
  // parameters and `forget_search`.

  /// Takes an evaluation. Returns whether another one is wanted. Changes no parameter.
  /// Errors: as prepare, bad_arguments (the algorithm takes no closure), remote_exception (what libtorch throws).
  Result<bool> search(double loss, std::span<const at::Tensor> gradients);
  /// Moves the parameters `which` to where the next evaluation is wanted, or to where the step ends.
  /// Errors: remote_exception.
  Result<void> move(std::span<const std::size_t> which);
  /// Ends the step. Precondition: `search` has returned false, and all parameters were moved.
  void end_search() noexcept;
  /// Puts the parameters `which` back to where they were before the step. Errors: remote_exception; the optimizer then
  /// refuses every step until a `load`.
  Result<void> roll_back(std::span<const std::size_t> which);
  /// Ends a step that was given up: the memory is that from before it. Precondition: all parameters were rolled back.
  void forget_search() noexcept;
  /// Returns whether a step by a closure is open.
  bool is_searching() const noexcept;

  /// Returns options and state. The format is docs/protocols/optimizer.md.
  /// Errors: limit_exceeded (no memory).
  Result<wire::Bytes> save() const;

  /// Takes over options and state that `save` returned; on error nothing has changed. Parameters are not part of it.
  /// Errors: malformed_payload (truncated, or not such a state), protocol_mismatch (written by a newer version),
  ///   bad_arguments (the state of another model or algorithm; the text names the first difference).
  Result<void> load(wire::ByteView bytes);

 private:
  using Numbers = std::unordered_map<const void*, std::size_t>;  // of parameters, by their TensorImpl
  LocalOptimizer() = default;
  /// Checks a group whose parameters come next, and adds them to `numbers`. Errors: as make.
  static Result<void> check_group(const ParameterGroup& group, Numbers& numbers);
  Result<void> check_one_group() const;
  Result<void> check_gradients(std::span<const at::Tensor> gradients) const;
  void append(ParameterGroup group);
  void raise_versions(std::span<const std::size_t> which) const;

  std::vector<at::Tensor> parameters_;
  std::vector<std::uint32_t> group_of_;  // of each parameter
  std::vector<Algorithm> algorithms_;    // of each group
  std::vector<ParameterState> states_;   // of each parameter
  std::vector<double> initial_lrs_;      // of each group; empty before the first schedule
  std::shared_ptr<Lbfgs> lbfgs_;         // only of LBFGS
  bool half_stepped_ = false;
};

}  // namespace caftan::optim
