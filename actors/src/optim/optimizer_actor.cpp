#include "optim/optimizer_actor.hpp"

#include <type_traits>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

namespace caftan::actors {

namespace request = optim::optimizer_request;
using optim::Admission;
using optim::Prepared;
using optim::StepDone;

caf::behavior optimizer_actor(OptimizerActor* self, base::Executor* executor,
                              std::shared_ptr<optim::OwnedOptimizer> optimizer) {
  self->state.set_optimizer(*executor, std::move(optimizer));
  return {[self](OptimizerEvent& event) { self->state.on_event(event); }};
}

void OptimizerActorState::set_optimizer(base::Executor& executor, std::shared_ptr<optim::OwnedOptimizer> optimizer) {
  executor_ = &executor;
  optimizer_ = std::move(optimizer);
}

void OptimizerActorState::on_event(OptimizerEvent& event) {
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

void OptimizerActorState::start_next() {
  while (!busy_ && !waiting_.empty()) {
    if (optimizer_->is_searching() && ends_search(*waiting_.front())) return roll_back();
    const Requested next = std::move(waiting_.front());
    waiting_.pop_front();
    std::visit([&](auto& request) { handle(request, next); }, *next);
  }
  if (!finishing_ || busy_) return;
  if (optimizer_->is_searching()) return roll_back();
  self_->quit();
}

bool OptimizerActorState::ends_search(const optim::OptimizerRequest& request) const {
  const auto is_other = [this](optim::StepNumber step) { return !ledger_.is_open(step) && step > ledger_.last(); };
  return std::visit(
      [&](const auto& asked) {
        using Asked = std::decay_t<decltype(asked)>;
        if constexpr (std::is_same_v<Asked, request::Abort>) {
          return ledger_.is_open(asked.step);
        } else if constexpr (requires { asked.order; }) {
          return is_other(asked.order.step);
        } else {
          return std::is_same_v<Asked, request::Save> || std::is_same_v<Asked, request::Cut> ||
                 std::is_same_v<Asked, request::StageState> || std::is_same_v<Asked, request::StageGroup>;
        }
      },
      request);
}

void OptimizerActorState::roll_back() {
  busy_ = true;
  optimizer_->roll_back(*executor_, [this, ended = when_ended()] { ended([this] { ledger_.search_dropped(); }); });
}

std::function<void(std::function<void()>)> OptimizerActorState::when_ended() {
  return [self = caf::actor_cast<caf::actor>(self_)](std::function<void()> complete) {
    caf::anon_send(self, OptimizerEvent{optimizer_event::Ended{std::move(complete)}});
  };
}

void OptimizerActorState::run(std::function<std::function<void()>()> work) {
  busy_ = true;
  executor_->post([work = std::move(work), ended = when_ended()] { ended(work()); });
}

void OptimizerActorState::handle(request::Step& step, const Requested& keep) {
  const auto admitted = ledger_.admit_step(step.order.step);
  if (!admitted) return (void)step.reply.set(admitted.error());
  if (*admitted == Admission::repeat) return (void)step.reply.set(ledger_.done());
  busy_ = true;
  executor_->post([this, &step, keep, optimizer = optimizer_, ended = when_ended(), &executor = *executor_] {
    const auto complete = [this, &step, keep, ended](Result<StepDone> outcome) {
      ended([this, &step, keep, outcome = std::move(outcome)] {
        ledger_.applied(step.order.step, outcome);
        step.reply.set(outcome);
      });
    };
    const Result<Prepared> prepared = optimizer->prepare(step.order, std::move(step.gradients), step.momenta);
    if (!prepared) return complete(prepared.error());
    optimizer->apply(step.order.step, 1, executor, complete);
  });
}

void OptimizerActorState::handle(request::Prepare& prepare, const Requested& keep) {
  const auto admitted = ledger_.admit_prepare(prepare.order.step);
  if (!admitted) return (void)prepare.reply.set(admitted.error());
  if (*admitted == Admission::repeat) return (void)prepare.reply.set(ledger_.prepared());
  run([this, &prepare, keep, optimizer = optimizer_]() -> std::function<void()> {
    auto outcome = optimizer->prepare(prepare.order, std::move(prepare.gradients), prepare.momenta);
    return [this, &prepare, keep, outcome = std::move(outcome)] {
      ledger_.prepared(prepare.order.step, outcome);
      prepare.reply.set(outcome);
    };
  });
}

void OptimizerActorState::handle(request::Commit& commit, const Requested& keep) {
  const auto admitted = ledger_.admit_commit(commit.step);
  if (!admitted) return (void)commit.reply.set(admitted.error());
  if (*admitted == Admission::repeat) return (void)commit.reply.set(ledger_.done());
  busy_ = true;
  executor_->post([this, &commit, keep, optimizer = optimizer_, ended = when_ended(), &executor = *executor_] {
    optimizer->apply(commit.step, commit.scale, executor, [this, &commit, keep, ended](Result<StepDone> outcome) {
      ended([this, &commit, keep, outcome = std::move(outcome)] {
        ledger_.applied(commit.step, outcome);
        commit.reply.set(outcome);
      });
    });
  });
}

void OptimizerActorState::handle(request::Search& search, const Requested& keep) {
  const auto admitted = ledger_.admit_search(search.order.step, search.order.evaluation);
  if (!admitted) return (void)search.reply.set(admitted.error());
  if (*admitted == Admission::repeat) return (void)search.reply.set(ledger_.searched());
  busy_ = true;
  executor_->post([this, &search, keep, optimizer = optimizer_, ended = when_ended(), &executor = *executor_] {
    optimizer->search(search.order, std::move(search.gradients), executor,
                      [this, &search, keep, ended](const Result<optim::SearchReply>& outcome) {
                        ended([this, &search, keep, outcome] {
                          outcome ? ledger_.searched(*outcome) : ledger_.search_dropped();
                          search.reply.set(outcome);
                        });
                      });
  });
}

void OptimizerActorState::handle(request::Abort& abort, const Requested&) {
  if (ledger_.abort(abort.step)) optimizer_->drop();
}

void OptimizerActorState::handle(request::Save& save, const Requested& keep) {
  run([&save, keep, optimizer = optimizer_]() -> std::function<void()> {
    auto bytes = std::make_shared<Result<wire::Bytes>>(optimizer->save());
    return [&save, keep, bytes] { save.reply.set(std::move(*bytes)); };
  });
}

void OptimizerActorState::handle(request::Cut& cut, const Requested& keep) {
  run([this, &cut, keep, optimizer = optimizer_]() -> std::function<void()> {
    auto bytes = std::make_shared<Result<wire::Bytes>>(optimizer->save());
    return [this, &cut, keep, bytes] {
      if (*bytes) return (void)cut.reply.set(optim::OwnerState{ledger_.made(), std::move(**bytes)});
      cut.reply.set(bytes->error());
    };
  });
}

void OptimizerActorState::handle(request::StageState& stage, const Requested& keep) {
  run([&stage, keep, optimizer = optimizer_]() -> std::function<void()> {
    return [&stage, keep, outcome = optimizer->stage_state(stage.state)] { stage.reply.set(outcome); };
  });
}

void OptimizerActorState::handle(request::StageGroup& stage, const Requested& keep) {
  run([&stage, keep, optimizer = optimizer_]() -> std::function<void()> {
    return [&stage, keep, outcome = optimizer->stage_group(stage.group, stage.objects)] { stage.reply.set(outcome); };
  });
}

void OptimizerActorState::handle(request::DropState&, const Requested&) { optimizer_->drop_state(); }

void OptimizerActorState::handle(request::TakeState& take, const Requested&) {
  if (!optimizer_->has_staged_state()) {
    return (void)take.reply.set(Error(Errc::bad_arguments, "no saved state was staged here"));
  }
  optimizer_->take_state();
  ledger_.loaded(take.step);
  take.reply.set({});
}

}  // namespace caftan::actors
