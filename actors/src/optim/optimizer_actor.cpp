#include "optim/optimizer_actor.hpp"

#include <caf/send.hpp>

#include <utility>

namespace caftan::actors {

namespace request = optim::optimizer_request;
using optim::Admission;
using optim::Prepared;
using optim::StepDone;

OptimizerActor::OptimizerActor(caf::actor_config& config, Executor& executor,
                               std::shared_ptr<optim::OwnedOptimizer> optimizer)
    : caf::event_based_actor(config), executor_(executor), optimizer_(std::move(optimizer)) {}

caf::behavior OptimizerActor::make_behavior() {
  return {[this](OptimizerEvent& event) { on_event(event); }};
}

void OptimizerActor::on_event(OptimizerEvent& event) {
  if (auto* requested = std::get_if<optimizer_event::Requested>(&event.event)) {
    waiting_.push_back(std::move(requested->request));
  } else if (auto* ended = std::get_if<optimizer_event::Ended>(&event.event)) {
    ended->complete();
    busy_ = false;
  } else {
    finishing_ = true;
  }
  start_next();
}

void OptimizerActor::start_next() {
  while (!busy_ && !waiting_.empty()) {
    const Requested next = std::move(waiting_.front());
    waiting_.pop_front();
    std::visit([&](auto& request) { handle(request, next); }, *next);
  }
  if (finishing_ && !busy_) quit();
}

std::function<void(std::function<void()>)> OptimizerActor::when_ended() {
  return [self = caf::actor_cast<caf::actor>(this)](std::function<void()> complete) {
    caf::anon_send(self, OptimizerEvent{optimizer_event::Ended{std::move(complete)}});
  };
}

void OptimizerActor::run(std::function<std::function<void()>()> work) {
  busy_ = true;
  executor_.post([work = std::move(work), ended = when_ended()] { ended(work()); });
}

void OptimizerActor::handle(request::Step& step, const Requested& keep) {
  const auto admitted = ledger_.admit_step(step.order.step);
  if (!admitted) return (void)step.answer.set(admitted.error());
  if (*admitted == Admission::repeat) return (void)step.answer.set(ledger_.done());
  busy_ = true;
  executor_.post([this, &step, keep, optimizer = optimizer_, ended = when_ended(), &executor = executor_] {
    const auto complete = [this, &step, keep, ended](Result<StepDone> outcome) {
      ended([this, &step, keep, outcome = std::move(outcome)] {
        ledger_.applied(step.order.step, outcome);
        step.answer.set(outcome);
      });
    };
    const Result<Prepared> prepared = optimizer->prepare(step.order, std::move(step.gradients));
    if (!prepared) return complete(prepared.error());
    optimizer->apply(step.order.step, 1, executor, complete);
  });
}

void OptimizerActor::handle(request::Prepare& prepare, const Requested& keep) {
  const auto admitted = ledger_.admit_prepare(prepare.order.step);
  if (!admitted) return (void)prepare.answer.set(admitted.error());
  if (*admitted == Admission::repeat) return (void)prepare.answer.set(ledger_.prepared());
  run([this, &prepare, keep, optimizer = optimizer_]() -> std::function<void()> {
    return [this, &prepare, keep, outcome = optimizer->prepare(prepare.order, std::move(prepare.gradients))] {
      ledger_.prepared(prepare.order.step, outcome);
      prepare.answer.set(outcome);
    };
  });
}

void OptimizerActor::handle(request::Commit& commit, const Requested& keep) {
  const auto admitted = ledger_.admit_commit(commit.step);
  if (!admitted) return (void)commit.answer.set(admitted.error());
  if (*admitted == Admission::repeat) return (void)commit.answer.set(ledger_.done());
  busy_ = true;
  executor_.post([this, &commit, keep, optimizer = optimizer_, ended = when_ended(), &executor = executor_] {
    optimizer->apply(commit.step, commit.scale, executor, [this, &commit, keep, ended](Result<StepDone> outcome) {
      ended([this, &commit, keep, outcome = std::move(outcome)] {
        ledger_.applied(commit.step, outcome);
        commit.answer.set(outcome);
      });
    });
  });
}

void OptimizerActor::handle(request::Abort& abort, const Requested&) {
  if (ledger_.abort(abort.step)) optimizer_->drop();
}

void OptimizerActor::handle(request::Save& save, const Requested& keep) {
  run([&save, keep, optimizer = optimizer_]() -> std::function<void()> {
    auto bytes = std::make_shared<Result<wire::Bytes>>(optimizer->save());
    return [&save, keep, bytes] { save.answer.set(std::move(*bytes)); };
  });
}

void OptimizerActor::handle(request::StageState& stage, const Requested& keep) {
  run([&stage, keep, optimizer = optimizer_]() -> std::function<void()> {
    return [&stage, keep, outcome = optimizer->stage_state(stage.state)] { stage.answer.set(outcome); };
  });
}

void OptimizerActor::handle(request::DropState&, const Requested&) { optimizer_->drop_state(); }

void OptimizerActor::handle(request::TakeState& take, const Requested&) {
  if (!optimizer_->has_staged_state()) {
    return (void)take.answer.set(Error(Errc::bad_arguments, "no saved state was staged here"));
  }
  optimizer_->take_state();
  ledger_.loaded(take.step);
  take.answer.set({});
}

}  // namespace caftan::actors
