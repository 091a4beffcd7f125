/// `DistributedOptimizer`: steps parameters of several workers, each at its owner, by the gradients of one distributed
/// autograd context.
///     optim::DistributedOptimizer optimizer(worker, parameters, optim::Adam{.lr = 2e-3}, {.clip_norm = 1.0});
///     autograd::Context context(worker);
///     context.backward({loss});
///     optimizer.step(context);
/// `parameters` are RRefs that their owners made (worker.make_rref(tensor), in a method of the module they belong to:
/// then steps take turns with that module's methods).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/optim/algorithms.hpp"
#include "caftan/optim/learning_rates.hpp"
#include "caftan/optim/step_messages.hpp"
#include "caftan/rpc/call_site.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::optim {

/// Parameters, at any owners, that are stepped with the same options.
struct RemoteParameterGroup {
  std::vector<RRef<at::Tensor>> parameters;
  Algorithm algorithm;
  /// One for each parameter, or none: then a saved state finds its parameter by its number in the list of all groups.
  /// All groups of an optimizer have names, or none has.
  std::vector<std::string> names = {};
};

/// Options of all steps of one optimizer.
struct StepOptions {
  /// Limit of the norm of all gradients of all owners together; 0 = none. A step then has two phases: nothing is
  /// changed anywhere before every owner has agreed.
  double clip_norm = 0;
  double clip_value = 0;           ///< limit of each element of a gradient, before the norm is taken; 0 = none
  bool error_if_nonfinite = true;  ///< with clip_norm: an infinite norm or one that is no number steps nothing
  /// The time-out of each call to an owner. A call that carries out a decided step or load has none: there this limits
  /// how long the caller waits for it. 0 = none; unset = the worker's default.
  std::optional<base::Duration> timeout = {};
  /// Whether a step is made at all owners or at none: two phases, of which the first can refuse and the second cannot.
  /// So is each step with clip_norm, and one by LBFGS.
  bool atomic = false;
};

/// The reply of one owner to a step.
struct OwnerStep {
  std::string worker;
  Result<StepDone> outcome;
};

/// How a step went at each owner.
struct StepReport {
  StepNumber step;
  std::vector<OwnerStep> owners;  ///< in the order in which the list of parameters first names the owners
  double norm = 0;                ///< norm of all gradients before they were clipped; 0 without clip_norm
  double scale = 1;               ///< the factor by which the gradients were multiplied
  double loss = 0;                ///< of the first evaluation; 0 without a closure
  std::uint64_t evaluations = 0;  ///< of the closure
};

/// The loss where the parameters are, and the context whose backward pass gave its gradients.
struct Evaluation {
  double loss = 0;
  autograd::Context context;
};
/// Evaluates the loss once: makes a context, runs the model forward and back, and returns both. An error ends the step.
using Closure = std::function<Result<Evaluation>()>;

/// Steps of one optimizer run one after the other, in the order in which they were begun, also when several are open.
/// Threads: any, all methods.
/// Source: torch.distributed.optim.DistributedOptimizer. Differences: parameter groups, clipping, schedules and saved
///   states; steps of several trainers on one owner never overlap; every owner's outcome is reported; gradients come
///   from the given context only, never from `.grad`.
class DistributedOptimizer final : public LearningRates {
 public:
  /// Makes an optimizer at each owner and waits for all of them.
  /// @param site  a Worker or a RoleContext
  /// Errors (thrown): bad_arguments (no parameter; an empty reference; a tensor that needs no gradient, is no leaf, or
  ///   comes twice, also through two references; an option out of range; LBFGS with parameters of several owners, more
  ///   than one group, or clipping), unsupported, wrong_type, and those of calls.
  ///   The text names the owner and the parameter. Nothing is left at any owner then.
  DistributedOptimizer(const CallSite& site, std::vector<RRef<at::Tensor>> parameters, Algorithm algorithm,
                       const StepOptions& options = {})
      : DistributedOptimizer(try_make(site, {{std::move(parameters), algorithm}}, options).value()) {}
  DistributedOptimizer(const CallSite& site, const std::vector<RemoteParameterGroup>& groups,
                       const StepOptions& options = {})
      : DistributedOptimizer(try_make(site, groups, options).value()) {}
  /// As the constructors, without throwing.
  static Result<DistributedOptimizer> try_make(const CallSite& site, const std::vector<RemoteParameterGroup>& groups,
                                               const StepOptions& options = {});

  DistributedOptimizer(DistributedOptimizer&&) noexcept = default;
  DistributedOptimizer& operator=(DistributedOptimizer&&) noexcept = default;

  /// Steps every parameter that has a gradient in `context`, at all owners, and waits.
  ///
  /// A parameter without gradient is left alone; none at all is an error. With atomic or clip_norm an owner that
  /// refuses or is lost before the second phase stops the step everywhere; else the other owners have stepped all the
  /// same, and the text and `last_report` say which.
  /// Errors (thrown): bad_arguments (no backward pass of the context has succeeded, or its last one failed; no
  ///   parameter has a gradient; a norm that is not finite; a learning rate or momentum out of range),
  ///   context_released, foreign_context (a context of another worker),
  ///   unsupported (a sparse gradient where the algorithm takes none),
  ///   remote_exception (libtorch failed in the step), limit_exceeded (no memory), peer_down, shut_down, timeout (an
  ///   owner may still step; with atomic or clip_norm the text says "committed, not yet confirmed" when all will, and
  ///   "has not begun" when the step waited for one that is not confirmed).
  StepReport step(const autograd::ContextView& context) { return try_step(context).value(); }
  Result<StepReport> try_step(const autograd::ContextView& context) { return step_async(context).result(); }
  /// As step, without waiting. The context must not end before the step has begun: a step that waits for an earlier one
  /// ends with context_released then.
  Future<StepReport> step_async(const autograd::ContextView& context);

  /// Steps by a closure, and waits. LBFGS evaluates it several times, each time with other parameters; other algorithms
  /// evaluate it once and step by its context. It runs on the calling thread, and must use this optimizer for nothing.
  ///     optimizer.step([&]() -> Result<optim::Evaluation> {
  ///       autograd::Context context(worker);
  ///       const at::Tensor loss = ...;
  ///       context.backward({loss});
  ///       return optim::Evaluation{loss.item<double>(), std::move(context)};
  ///     });
  /// An error of the closure ends the step, and so does an exception, which passes through `try_step` as well; with
  /// LBFGS the parameters are then those from before the step, also when this worker is lost in the middle of it.
  /// Errors (thrown): as step of a context, with LBFGS also would_deadlock (inside of a closure of this optimizer);
  ///   those of the closure.
  ///
  /// Source: torch.optim.Optimizer.step with a closure.
  StepReport step(const Closure& closure) { return try_step(closure).value(); }
  Result<StepReport> try_step(const Closure& closure);
  /// As step, by a closure that returns at once. Its future is waited for on the calling thread.
  StepReport step(const std::function<Future<Evaluation>()>& closure) { return try_step(closure).value(); }
  Result<StepReport> try_step(const std::function<Future<Evaluation>()>& closure) {
    return try_step(Closure([&closure] { return closure().result(); }));
  }

  /// Returns the replies of all owners to the last step that ended, also if it failed; step 0 before the first.
  StepReport last_report() const;

  /// Adds a group at all owners of its parameters, which may be new ones, or, on an error, at none, between two steps,
  /// and waits. Schedules that were made before do not change its rate.
  /// Errors (thrown): those of the constructor; timeout, with a text that says so, also when the group is decided and
  ///   not all owners have confirmed it yet.
  ///
  /// Source: torch.optim.Optimizer.add_param_group.
  void add_param_group(const RemoteParameterGroup& group) { try_add_param_group(group).value(); }
  Result<void> try_add_param_group(const RemoteParameterGroup& group);

  /// Returns options and state of all owners, as they are between two steps, behind a manifest with a checksum of each
  /// part. Parameters are not part of it.
  /// Errors (thrown): those of calls; bad_arguments (owners are at different steps, because one has refused or missed
  ///   the last one; the text names them); limit_exceeded (the state of one owner is larger than limits.tensors).
  wire::Bytes save() { return try_save().value(); }
  Result<wire::Bytes> try_save();
  /// Takes over what `save` returned, at all owners or, on an error, at none; only an owner that is lost in between
  /// leaves the others loaded. Owners may be others than those that have saved: the state of each parameter, known by
  /// its name or number, goes to the owner that has it here.
  /// Errors (thrown): malformed_payload (truncated, damaged, or no such state), protocol_mismatch (a newer version),
  ///   bad_arguments (of another model; or an older build has saved it, and owners are others), limit_exceeded (the
  ///   part of an owner is larger than limits.tensors: use more owners, or raise the limit), and those of calls;
  ///   timeout, with a text that says so, also when the load is decided and not all owners have confirmed it yet.
  void load(wire::ByteView state) { try_load(state).value(); }
  Result<void> try_load(wire::ByteView state);

  std::size_t groups() const noexcept override;
  /// Errors of all with a group (thrown): bad_arguments (there is no such group).
  double lr(std::size_t group) const override;
  void set_lr(std::size_t group, double lr) override;
  std::optional<double> momentum(std::size_t group) const override;
  void set_momentum(std::size_t group, double momentum) override;
  std::vector<double> initial_lrs() override;

 private:
  class State;
  explicit DistributedOptimizer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void check_group(std::size_t group) const;

  std::shared_ptr<State> state_;
};

}  // namespace caftan::optim
