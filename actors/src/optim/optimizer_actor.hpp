/// The actor of one optimizer at the owner of its parameters: takes requests one at a time, asks `StepLedger` what to
/// do with each, and lets runners carry it out on the strands of the objects to which the parameters belong.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <variant>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "caftan/optim/internal/owned_optimizer.hpp"
#include "caftan/optim/internal/remote_optimizer.hpp"
#include "caftan/optim/internal/step_ledger.hpp"

namespace caftan::actors {

namespace optimizer_event {
struct Requested {
  std::shared_ptr<optim::OptimizerRequest> request;
};
/// What a runner did has ended.
struct Ended {
  std::function<void()> complete;  ///< runs in the actor: reports to the ledger and replies
};
/// The last reference to the optimizer is gone.
struct Finish {};
}  // namespace optimizer_event

struct OptimizerEvent {
  std::variant<optimizer_event::Requested, optimizer_event::Ended, optimizer_event::Finish> event;
};

class OptimizerActorState {
 public:
  static constexpr const char* name = "optimizer_actor";

  explicit OptimizerActorState(caf::event_based_actor* self) : self_(self) {}

  void set_optimizer(base::Executor& executor, std::shared_ptr<optim::OwnedOptimizer> optimizer);
  void on_event(OptimizerEvent& event);

 private:
  using Requested = std::shared_ptr<optim::OptimizerRequest>;
  void start_next();
  void handle(optim::optimizer_request::Step& request, const Requested& keep);
  void handle(optim::optimizer_request::Prepare& request, const Requested& keep);
  void handle(optim::optimizer_request::Commit& request, const Requested& keep);
  void handle(optim::optimizer_request::Search& request, const Requested& keep);
  void handle(optim::optimizer_request::Abort& request, const Requested& keep);
  void handle(optim::optimizer_request::Save& request, const Requested& keep);
  void handle(optim::optimizer_request::Cut& request, const Requested& keep);
  void handle(optim::optimizer_request::StageState& request, const Requested& keep);
  void handle(optim::optimizer_request::StageGroup& request, const Requested& keep);
  void handle(optim::optimizer_request::DropState& request, const Requested& keep);
  void handle(optim::optimizer_request::TakeState& request, const Requested& keep);
  /// Returns whether the open step by a closure, if there is one, has been given up when this request comes.
  bool ends_search(const optim::OptimizerRequest& request) const;
  void roll_back();
  /// Runs `work` on a runner. `work` returns a function that the actor then runs.
  void run(std::function<std::function<void()>()> work);
  /// Returns a function that makes this actor run its argument.
  std::function<void(std::function<void()>)> when_ended();

  caf::event_based_actor* const self_;
  base::Executor* executor_ = nullptr;
  std::shared_ptr<optim::OwnedOptimizer> optimizer_;
  optim::StepLedger ledger_;
  std::deque<Requested> waiting_;
  bool busy_ = false;
  bool finishing_ = false;
};

using OptimizerActor = caf::stateful_actor<OptimizerActorState>;

/// The behaviour of an OptimizerActor. @param executor  runs the work; outlives the actor
caf::behavior optimizer_actor(OptimizerActor* self, base::Executor* executor,
                              std::shared_ptr<optim::OwnedOptimizer> optimizer);

}  // namespace caftan::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(caftan::actors::OptimizerEvent)
