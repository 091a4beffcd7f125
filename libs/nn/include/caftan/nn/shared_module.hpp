/// `SharedModule`: a module that several trainers train at once, at its owner, with a consistency mode that says what
/// each trainer sees of the others (consistency.hpp). All workers register the class of the module (`add_module`,
/// served_module.hpp):
///     nn::SharedModule<Net> net(worker, "ps", {.trainers = 2, .algorithm = optim::SGD{.lr = 0.1}}, 64);
///     worker.rpc_sync<&train>("trainer0", net);              // the handle travels like a reference
/// and at trainer 0:
///     net.join(0);
///     for (...) {
///       const autograd::Context context(worker);
///       const at::Tensor loss = at::mse_loss(net.forward(x), y);
///       context.backward({loss});
///       const nn::StepResult done = net.step(context, batch);
///     }
///     at::Tensor y = net.evaluate(x);                         // from everywhere, no trainer needed
/// Rules: docs/protocols/consistency.md.
#pragma once

#include <c10/core/GradMode.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/nn/consistency.hpp"
#include "caftan/nn/remote_module.hpp"
#include "caftan/nn/step_log.hpp"
#include "caftan/optim/algorithms.hpp"
#include "caftan/optim/learning_rates.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::nn {

class ReadingHold;
class SharedControl;
class Trainer;

/// How a module is shared.
struct SharedOptions {
  ConsistencyOptions consistency{};
  std::uint32_t trainers = 1;  ///< how many there are, all of them expected: 0, 1, ...
  optim::Algorithm algorithm = optim::SGD{.lr = 0.01};
  /// A path at the owner, where a new file gets the log of all steps; empty = no log.
  std::string step_log{};

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& consistency& trainers& algorithm& step_log;
  }
};

/// What became of a trainer's gradient.
struct StepResult {
  ModelVersion version;             ///< that the step has made
  std::uint64_t staleness = 0;      ///< how many steps were applied between what the gradient read and this step
  std::uint32_t contributions = 0;  ///< gradients in the step: 1 but in mode sync
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& version& staleness& contributions;
  }
};

/// The rates of a shared module at its owner.
struct SharedRates {
  double lr = 0;                     ///< of the last step, or of the options
  std::optional<double> momentum{};  ///< none: the algorithm has none
  double initial_lr = 0;             ///< when a schedule was first made
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& lr& momentum& initial_lr;
  }
};

/// A module of one version that the owner lets the caller read.
struct Reading {
  RRef<ServedModule> module;
  ModelVersion version;
  RRef<ReadingHold> hold;  ///< of an evaluation: the owner keeps the version for as long as this reference exists
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& module& version& hold;
  }
};

/// What is known of a shared module at its owner.
struct SharedStatus {
  ModelVersion version;                  ///< how many steps were applied
  std::vector<std::uint64_t> staleness;  ///< element s: how many applied gradients were s steps behind
  std::vector<TrainerNumber> joined;     ///< trainers that have joined and are not gone
  std::vector<TrainerNumber> gone;       ///< trainers that are lost or have left
  std::uint64_t open_contexts = 0;       ///< that have read and have neither stepped nor ended
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& version& staleness& joined& gone& open_contexts;
  }
};

/// What a SharedModule is whatever its class. Copies refer to the same module; copies of a handle that has joined are
/// the same trainer. A handle that was sent to another worker has not joined there.
/// Errors of all that ask the owner: as CallSite, and those of the module's creation. `try_` forms return them, the
///   others throw them as RpcException.
/// Threads: one at a time for one handle; copies are independent. What asks the owner blocks.
class SharedHandle {
 public:
  SharedHandle() = default;

  explicit operator bool() const noexcept { return static_cast<bool>(control_); }
  /// Returns the worker that has the module. Precondition: not empty.
  Peer owner() const { return module_.owner(); }
  /// Returns the name of that worker. Precondition: not empty.
  const std::string& owner_name() const { return module_.owner_name(); }
  /// Returns a future that is ready when the module has been made, with the error if it was not: those of the
  /// constructor, of check_consistency and LocalOptimizer::make, and io_error (the step log). Precondition: not empty.
  Future<void> created() const;

  /// Makes this handle, and copies made of it later, the trainer of that number at this worker, and waits. When the
  /// worker is lost, the trainer is gone.
  /// @param number  below SharedOptions::trainers
  /// Errors: bad_arguments (no such number; another handle is this trainer, or was and is gone; this handle has
  ///   joined).
  void join(std::uint32_t number) { try_join(number).value(); }
  Result<void> try_join(std::uint32_t number);
  /// Ends this trainer: no round waits for it any more. The end of the last copy of the handle that has joined does the
  /// same. A trainer that has left cannot come back.
  void leave() noexcept { trainer_.reset(); }
  /// Returns the number by which this handle has joined, if it has.
  std::optional<std::uint32_t> trainer() const noexcept;

  /// Delivers the gradients that `context` has for this module, and waits until the mode has applied them: in mode
  /// sync, until the round is closed. The context makes one step of this module; then, and after most errors, the
  /// trainer goes on with a new context. Buffers of the module, such as running statistics, come from the calls of this
  /// context with the step.
  /// @param batch  what the trainer calls its input, for the step log and its replay
  /// Errors: bad_arguments (not joined; no call of the context has read this module, or one still runs; no parameter
  ///   has a gradient; the context has stepped already; rates out of their range), unsupported (a sparse gradient where
  ///   the algorithm takes none), stale_gradient, round_closed, context_released, foreign_context, peer_down (the
  ///   trainer is gone), timeout (the gradient counts all the same).
  StepResult step(const autograd::ContextView& context, std::uint64_t batch) const {
    return try_step(context, batch).value();
  }
  Result<StepResult> try_step(const autograd::ContextView& context, std::uint64_t batch) const {
    return step_async(context, batch).result();
  }
  /// As step, without waiting.
  Future<StepResult> step_async(const autograd::ContextView& context, std::uint64_t batch) const;

  /// Returns the learning rate and the momentum of this trainer's steps, for schedules (optim/schedule.hpp), and asks
  /// the owner for them at the first call, so make it after load_optimizer:
  ///     optim::StepLR schedule(net.rates(), {.step_size = 10, .gamma = 0.5});
  ///     for (...) { ...; net.step(context, batch); schedule.step(); }
  /// From then on each step of this trainer is made at these rates, and later steps of trainers without schedules, too.
  /// A step of mode sync has the rates of the trainer with the lowest number that brings some. The step log has the
  /// rates of each step. They live as long as the last copy of the handle that has joined.
  /// Errors: bad_arguments (not joined).
  /// Source: the optimizer that is given to a torch.optim.lr_scheduler.
  optim::LearningRates& rates() const { return *try_rates().value(); }
  Result<optim::LearningRates*> try_rates() const;

  /// Returns the version and what else is known at the owner.
  SharedStatus status() const { return try_status().value(); }
  Result<SharedStatus> try_status() const;

  /// Returns references to the parameters at the newest version. As ModuleHandle::named_parameters.
  std::vector<NamedReference> named_parameters() const { return module_.named_parameters(); }
  Result<std::vector<NamedReference>> try_named_parameters() const { return module_.try_named_parameters(); }
  /// As named_parameters, to the buffers.
  std::vector<NamedReference> named_buffers() const { return module_.named_buffers(); }
  Result<std::vector<NamedReference>> try_named_buffers() const { return module_.try_named_buffers(); }
  /// Returns the values of all parameters and buffers at one version. Errors: as ModuleHandle::state_dict.
  StateDict state_dict(const StateOptions& options = {}) const { return module_.state_dict(options); }
  Result<StateDict> try_state_dict(const StateOptions& options = {}) const { return module_.try_state_dict(options); }
  /// Gives the module these values. The version stays, so a replay of the step log begins after the last load.
  /// Errors: as ModuleHandle::load_state_dict; module_busy while a context that has read the module is open.
  void load_state_dict(const StateDict& state, const StateOptions& options = {}) const {
    module_.load_state_dict(state, options);
  }
  Result<void> try_load_state_dict(const StateDict& state, const StateOptions& options = {}) const {
    return module_.try_load_state_dict(state, options);
  }

  /// Returns options and state of the optimizer, between two steps. To go on later from the same point, take it and the
  /// state_dict while no trainer steps.
  /// Errors: limit_exceeded (no memory, or larger than limits.tensors).
  wire::Bytes save_optimizer() const { return try_save_optimizer().value(); }
  Result<wire::Bytes> try_save_optimizer() const;
  /// Takes over what save_optimizer returned; on an error nothing has changed.
  /// Errors: those of LocalOptimizer::load; module_busy (a context that has read the module is open).
  void load_optimizer(wire::ByteView state) const { try_load_optimizer(state).value(); }
  Result<void> try_load_optimizer(wire::ByteView state) const;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& module_& control_;
  }

 protected:
  /// Sets the options of later calls.
  void set_options(CallOptions options);
  /// Lets the owner make the actor by which `module` is shared.
  Result<void> share(const CallSite& site, const rpc::Destination& to, RRef<ServedModule> module,
                     const SharedOptions& options);
  /// Returns what the current context reads, once its mode lets it read.
  Future<Reading> open() const;
  /// Returns a copy of the newest version.
  Future<Reading> open_evaluation() const;

  /// Lets this handle make the actor of the module.
  class Home : public ModuleHandle {
   public:
    using ModuleHandle::serve;
    /// Sets the options of later calls.
    void set_options(CallOptions options) { options_ = options; }
  };
  Home module_;
  RRef<SharedControl> control_;
  std::shared_ptr<Trainer> trainer_;
  CallOptions options_;
};

namespace detail {

/// A handle of a module that a Reading has.
template <class Net>
class ReadModule : public RemoteModule<Net> {
 public:
  ReadModule(RRef<ServedModule> module, bool training, CallOptions options) {
    this->module_ = std::move(module);
    this->training_ = training;
    this->options_ = options;
  }
};

}  // namespace detail

/// A shared module as it was at one version, for evaluation: calls run in eval mode and without gradients, beside the
/// trainers, and take part in nothing else. The owner keeps the version for as long as a copy of this exists or a call
/// of it runs, so do not keep it longer than needed. Threads: one at a time for one Evaluation; copies are independent.
template <class Net>
class Evaluation {
 public:
  Evaluation(Reading reading, CallOptions options)
      : reading_(std::move(reading)), module_(reading_.module, false, options) {}

  /// Returns how many steps were applied to what is read.
  ModelVersion version() const noexcept { return reading_.version; }

  /// Calls Net::forward and waits. Errors (thrown): as RemoteModule::forward.
  template <class... A>
  auto forward(const A&... arguments) const {
    return rpc_sync<&Net::forward>(arguments...);
  }
  /// As forward, without waiting.
  template <class... A>
  auto forward_async(const A&... arguments) const {
    return rpc_async<&Net::forward>(arguments...);
  }
  /// Calls the registered method M, and waits. Errors (thrown): as RemoteModule::rpc_sync.
  template <auto M, class... A>
  auto rpc_sync(const A&... arguments) const {  // no overload, no template
    return rpc_async<M>(arguments...).get();
  }
  /// As rpc_sync, without waiting.
  template <auto M, class... A>
  auto rpc_async(const A&... arguments) const {  // no overload, no template
    const c10::AutoGradMode no_graph(false);
    using Outcome = Result<typename decltype(module_.template rpc_async<M>(arguments...))::value_type>;
    // The owner keeps the version until the result is here, also where this object ends before.
    return module_.template rpc_async<M>(arguments...).then([reading = reading_](Outcome&& outcome) {
      return Outcome(std::move(outcome));
    });
  }

 private:
  Reading reading_;
  detail::ReadModule<Net> module_;
};

/// A module of the class Net that several trainers share. See SharedHandle for trainers, steps and state.
template <class Net>
class SharedModule : public SharedHandle {
 public:
  SharedModule() = default;
  /// Makes a Net at the worker `to`, without waiting for it, and shares it. The owner makes further ones of the same
  /// arguments, one for each context that reads beside others; parameters and buffers are all that these have in
  /// common, so a Net keeps nothing else that a call changes, and no tensor of its constructor's arguments.
  /// @param site  a Worker or a RoleContext
  /// Errors (thrown): as RemoteModule's constructor. All others are those of each use: see SharedHandle::created.
  template <class... A>
  SharedModule(const CallSite& site, const rpc::Destination& to, const SharedOptions& options, const A&... arguments)
      : SharedModule(try_make(site, to, options, arguments...).value()) {}
  /// As the constructor, without throwing. Where the constructor's parameters are not the types of the arguments, P has
  /// them.
  template <class... P, class... A>
  static Result<SharedModule> try_make(const CallSite& site, const rpc::Destination& to, const SharedOptions& options,
                                       const A&... arguments) {
    using Constructor = detail::ModuleConstructor<Net, detail::WireOf<rpc::TypeList<P...>, A...>>;
    static_assert(Constructor::kCanShare, "the arguments of a shared module are copied: their types need copying");
    auto module = detail::try_construct<Net, Constructor, Constructor::kMakeShared>(site, to, arguments...);
    if (!module) return module.error();
    SharedModule made;
    const Result<void> shared = made.share(site, to, *std::move(module), options);
    if (!shared) return shared.error();
    return made;
  }

  /// Returns a handle with options for its calls: `net.with({.timeout = 5s}).forward(x)`. They are not sent along.
  SharedModule with(CallOptions options) const {
    SharedModule other = *this;
    other.set_options(options);
    return other;
  }

  /// Calls Net::forward for this trainer, in train mode, and waits. The current autograd context reads one version, the
  /// one that its first call gets (CM-3); that call waits as long as the mode has it wait.
  /// Errors (thrown): as RemoteModule::rpc_sync; bad_arguments (not joined; the context has stepped already),
  ///   unknown_context (in no autograd context), lease_conflict, peer_down (the trainer is gone).
  template <class... A>
  auto forward(const A&... arguments) const {
    return rpc_sync<&Net::forward>(arguments...);
  }
  /// As forward, without waiting. Tensors among the arguments of a context's first call are read when the mode lets it
  /// read: do not change them in place before the result is there.
  template <class... A>
  auto forward_async(const A&... arguments) const {
    return rpc_async<&Net::forward>(arguments...);
  }
  /// As forward, of the registered method M.
  template <auto M, class... A>
  auto rpc_sync(const A&... arguments) const {  // no overload, no template
    return rpc_async<M>(arguments...).get();
  }
  template <auto M, class... A>
  auto try_rpc_sync(const A&... arguments) const {  // no overload, no template
    return rpc_async<M>(arguments...).result();
  }
  /// As rpc_sync, without waiting.
  template <auto M, class... A>
  auto rpc_async(const A&... arguments) const {  // no overload, no template
    Future<Reading> reading = open();
    if (reading.ready()) return call<M>(std::move(reading).outcome(), options_, arguments...);
    return std::move(reading).then([options = options_, values = std::tuple<detail::Parameter<A>...>(arguments...)](
                                       const Result<Reading>& opened) {
      return std::apply([&](const auto&... value) { return call<M>(opened, options, value...); }, values);
    });
  }

  /// Returns the module as it is now, for evaluation. Waits while a step is being applied.
  /// Errors (thrown): those of calls; limit_exceeded (no memory for a copy).
  Evaluation<Net> evaluation() const { return try_evaluation().value(); }
  Result<Evaluation<Net>> try_evaluation() const {
    Result<Reading> reading = open_evaluation().result();
    if (!reading) return reading.error();
    return Evaluation<Net>(*std::move(reading), options_);
  }
  /// Calls Net::forward of the module as it is now, in eval mode and without gradients, and waits.
  /// Errors (thrown): as evaluation and Evaluation::forward.
  template <class... A>
  auto evaluate(const A&... arguments) const {
    return evaluation().forward(arguments...);
  }

 private:
  template <auto M, class... A>
  static auto call(const Result<Reading>& reading, CallOptions options, const A&... arguments) {
    using Called = decltype(detail::ReadModule<Net>({}, true, options).template rpc_async<M>(arguments...));
    if (!reading) return make_ready_future<typename Called::value_type>(reading.error());
    return detail::ReadModule<Net>(reading->module, true, options).template rpc_async<M>(arguments...);
  }
};

}  // namespace caftan::nn
