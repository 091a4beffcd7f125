/// `RemoteOptimizer`: what a DistributedOptimizer refers to at each owner of parameters. Its methods read the gradients
/// of the call's context and hand one request to the optimizer's actor, which answers the future.
/// Users start with distributed_optimizer.hpp.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "caftan/optim/step_messages.hpp"
#include "caftan/rpc/function.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/hosted_object.hpp"

namespace caftan {
class Registry;
}

namespace caftan::optim {

/// The requests that reach the actor of an optimizer.
namespace optimizer_request {
struct Step {
  StepOrder order;
  std::vector<at::Tensor> gradients;  ///< one per parameter, undefined where there is none
  Promise<StepDone> reply;
  Momenta momenta = {};  ///< empty = as they are
};
struct Prepare {
  StepOrder order;
  std::vector<at::Tensor> gradients;
  Promise<Prepared> reply;
  Momenta momenta = {};
};
struct Commit {
  StepNumber step;
  double scale = 1;
  Promise<StepDone> reply;
};
struct Search {
  SearchOrder order;
  std::vector<at::Tensor> gradients;
  Promise<SearchReply> reply;
};
struct Abort {
  StepNumber step;
};
struct Save {
  Promise<wire::Bytes> reply;
};
struct Cut {
  Promise<OwnerState> reply;
};
struct StageState {
  wire::Bytes state;
  Promise<void> reply;
};
struct StageGroup {
  OptimizerSpec::Group group;
  std::vector<std::shared_ptr<rpc::HostedObject>> objects;  ///< the values of the group's references, in order
  Promise<void> reply;
};
struct DropState {};
struct TakeState {
  StepNumber step;  ///< the number of the last step of the optimizer whose state was saved
  Promise<void> reply;
};
}  // namespace optimizer_request

using OptimizerRequest =
    std::variant<optimizer_request::Step, optimizer_request::Prepare, optimizer_request::Commit,
                 optimizer_request::Search, optimizer_request::Abort, optimizer_request::Save, optimizer_request::Cut,
                 optimizer_request::StageState, optimizer_request::StageGroup, optimizer_request::DropState,
                 optimizer_request::TakeState>;

/// Sends requests to the optimizer's actor, which ends with this object.
class OptimizerMailbox {
 public:
  virtual ~OptimizerMailbox() = default;
  /// Threads: any; does not block. Every promise in a request is answered.
  virtual void send(OptimizerRequest request) = 0;
};

/// The methods follow the rules of StepLedger. Errors of all: shut_down (the worker is ending).
class RemoteOptimizer {
 public:
  /// @param objects  the values of the references to `parameters`
  /// @param registry  has the code of the user's algorithms; outlives this
  RemoteOptimizer(std::vector<at::Tensor> parameters, std::vector<std::shared_ptr<rpc::HostedObject>> objects,
                  const Registry& registry, std::unique_ptr<OptimizerMailbox> mailbox)
      : parameters_(std::move(parameters)),
        objects_(std::move(objects)),
        registry_(&registry),
        mailbox_(std::move(mailbox)) {}

  /// Steps by the gradients of the call's context.
  /// Errors: unknown_context (called outside any), context_released, would_deadlock (called from a method that keeps
  ///   the turn of an object whose parameters these are), and those of StepLedger and OwnedOptimizer.
  Future<StepDone> step(const CallInfo& info, const StepOrder& order) { return step_with(info, order, {}); }
  /// As step, with momenta that may have changed. Errors: also bad_arguments (of another number of groups).
  Future<StepDone> step_with(const CallInfo& info, const StepOrder& order, const Momenta& momenta);
  /// The first phase of a step over several owners. Errors: as step.
  Future<Prepared> prepare(const CallInfo& info, const StepOrder& order) { return prepare_with(info, order, {}); }
  Future<Prepared> prepare_with(const CallInfo& info, const StepOrder& order, const Momenta& momenta);
  /// The second phase. @param scale  of the gradients that were prepared
  Future<StepDone> commit(StepNumber step, double scale);
  /// Takes one evaluation of a step by a closure, whose gradients are those of the call's context, and moves the
  /// parameters. Errors: as step; remote_exception. After an error the step is rolled back.
  Future<SearchReply> search(const CallInfo& info, const SearchOrder& order);
  /// Gives a prepared step up, or a step by a closure, whose parameters go back to where they were before it; does
  /// nothing where there is none.
  void abort(StepNumber step);

  /// Returns options and state. Errors: limit_exceeded.
  Future<wire::Bytes> save();
  /// Returns the same and the last step that was made here, for the step coordinator to compare owners.
  Future<OwnerState> cut();
  /// As cut, of a state that is larger than a message.
  Future<OwnerBulk> cut_bulk();
  /// Checks a saved state and keeps it for take_state. Errors: those of LocalOptimizer::load.
  Future<void> stage_state(wire::Bytes state);
  /// As stage_state, of a state that is larger than a message. Errors: also those of from_bulk.
  Future<void> stage_bulk(const at::Tensor& state);
  /// Checks a group of parameters of this worker and keeps it for take_state. Waits until their references are
  /// confirmed. Errors: those of OwnedOptimizer::stage_group, and why a parameter will never be there.
  Future<void> stage_group(OptimizerSpec::Group group);
  /// Forgets what was staged.
  void drop_state();
  /// Exchanges options and state for those that stage_state keeps, or adds the group that stage_group keeps.
  /// Errors: bad_arguments (none are kept).
  Future<void> take_state(StepNumber step);

 private:
  Result<std::vector<at::Tensor>> gradients_of(const CallInfo& info) const;

  std::vector<at::Tensor> parameters_;
  std::vector<std::shared_ptr<rpc::HostedObject>> objects_;
  std::vector<std::shared_ptr<rpc::HostedObject>> staged_;  // of the parameters of a staged group
  const Registry* registry_;
  std::unique_ptr<OptimizerMailbox> mailbox_;
};

/// Waits for the values of references to parameters of this worker.
/// Errors: not_owner (a parameter of another worker), and why a parameter will never be there.
Result<std::vector<std::shared_ptr<rpc::HostedObject>>> wait_for_parameters(
    const std::vector<RRef<at::Tensor>>& parameters);

/// Makes an optimizer at the owner of the parameters. Every worker has it registered.
/// Errors: those of OwnedOptimizer::make; not_owner (a parameter of another worker), and why a parameter will never be
///   there.
inline constexpr RemoteFunction<Result<RRef<RemoteOptimizer>>(Worker&, const OptimizerSpec&)> kMakeOptimizer{
    "caftan.optimizer"};

}  // namespace caftan::optim
