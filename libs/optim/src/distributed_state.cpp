#include "distributed_state.hpp"

#include <cmath>
#include <utility>

#include "caftan/optim/clipping.hpp"
#include "gather.hpp"

namespace caftan::optim {
namespace {

/// What makes a context one that cannot be stepped by.
Result<void> check_context(const autograd::ContextRecord& context) {
  if (auto open = context.check_open(); !open) return open;
  const autograd::DecidedSet decided = context.decided();
  const std::string name = "autograd context " + to_string(context.id());
  if (decided.up_to().value == 0) {
    return Error(Errc::bad_arguments, name + " has no gradients: call context.backward({loss}) before the step");
  }
  if (!decided.is_ok(decided.up_to())) {
    return Error(Errc::bad_arguments, "the last backward pass of " + name +
                                          " failed: nothing is stepped by what earlier ones left; begin a new context");
  }
  return {};
}

std::string sentence(const OwnerStep& owner) {
  if (!owner.outcome) return owner.worker + ": " + owner.outcome.error().message();
  return owner.worker + " has stepped " + std::to_string(owner.outcome->stepped) + " parameters";
}

/// Returns the first failure, with what every owner said.
Result<void> check_owners(const StepReport& report) {
  const Error* first = nullptr;
  std::string text = "step " + std::to_string(report.step.value) + " failed";
  for (const OwnerStep& owner : report.owners) {
    text += "; " + sentence(owner);
    if (owner.outcome) continue;
    // Those that had agreed are not why it failed.
    if (!first || first->code() == Errc::cancelled) first = &owner.outcome.error();
  }
  if (!first) return {};
  return Error(first->code(), first->worker(), std::move(text), std::make_shared<Error>(*first));
}

}  // namespace

Ambient outside_contexts() {
  Ambient ambient = Ambient::capture();
  ambient.autograd_context.reset();
  return ambient;
}

struct DistributedOptimizer::State::OpenStep {
  std::shared_ptr<autograd::ContextRecord> context;
  Promise<StepReport> promise;
  StepReport report;
};

// ---- turns

void DistributedOptimizer::State::take_turn(std::function<void()> begin) {
  {
    const std::lock_guard lock(mutex_);
    if (running_) return waiting_.push_back(std::move(begin));
    running_ = true;
  }
  begin();
}

void DistributedOptimizer::State::end_turn() {
  std::function<void()> next;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      running_ = false;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next();
}

// ---- steps

Future<StepReport> DistributedOptimizer::State::step(std::shared_ptr<autograd::ContextRecord> context) {
  auto open = std::make_shared<OpenStep>(OpenStep{std::move(context), Promise<StepReport>(caller_), {}});
  Future<StepReport> future = open->promise.future();
  take_turn([self = shared_from_this(), open] { self->begin_step(open); });
  return future;
}

void DistributedOptimizer::State::begin_step(const Open& open) {
  if (Result<void> fit = check_context(*open->context); !fit) return settle(open, fit.error());
  {
    const std::lock_guard lock(mutex_);
    open->report.step = last_ = StepNumber{last_.value + 1};
  }
  if (options_.clip_norm > 0) {
    prepare(open);
  } else {
    step_at_once(open);
  }
}

StepOrder DistributedOptimizer::State::order_for(const Owner& owner, StepNumber step) {
  StepOrder order{step, {}, options_.clip_norm > 0};
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t group : owner.groups) order.lrs.push_back(learning_rate(algorithms_[group]));
  return order;
}

void DistributedOptimizer::State::step_at_once(const Open& open) {
  std::vector<Future<StepDone>> futures;
  autograd::ContextView(open->context).bind([&] {
    futures = call_all<StepDone>([&](const Owner& owner) {
      return owner.optimizer.with(call_options())
          .rpc_async<&RemoteOptimizer::step>(order_for(owner, open->report.step));
    });
  })();
  gather(std::move(futures), [self = shared_from_this(), open](std::vector<Result<StepDone>> outcomes) {
    self->finish(open, std::move(outcomes), {});
  });
}

void DistributedOptimizer::State::prepare(const Open& open) {
  std::vector<Future<Prepared>> futures;
  autograd::ContextView(open->context).bind([&] {
    futures = call_all<Prepared>([&](const Owner& owner) {
      return owner.optimizer.with(call_options())
          .rpc_async<&RemoteOptimizer::prepare>(order_for(owner, open->report.step));
    });
  })();
  gather(std::move(futures), [self = shared_from_this(), open](std::vector<Result<Prepared>> outcomes) {
    self->on_prepared(open, std::move(outcomes));
  });
}

void DistributedOptimizer::State::on_prepared(const Open& open, std::vector<Result<Prepared>> outcomes) {
  double squared_norm = 0;
  for (const Result<Prepared>& outcome : outcomes) {
    if (!outcome) return give_up(open, outcomes, {});
    squared_norm += outcome->squared_norm;
  }
  open->report.norm = std::sqrt(squared_norm);
  if (!std::isfinite(open->report.norm) && options_.error_if_nonfinite) {
    return give_up(
        open, outcomes,
        Error(Errc::bad_arguments, "step " + std::to_string(open->report.step.value) +
                                       ": the norm of all gradients is " + std::to_string(open->report.norm) +
                                       ", nothing was stepped; skip this batch, or set error_if_nonfinite "
                                       "to false"));
  }
  open->report.scale = clip_scale(squared_norm, options_.clip_norm);
  commit(open);
}

void DistributedOptimizer::State::give_up(const Open& open, const std::vector<Result<Prepared>>& outcomes,
                                          Result<void> verdict) {
  std::vector<Result<StepDone>> results;
  {
    Ambient ambient = outside_contexts();
    const AmbientSwap swap(&ambient);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      results.emplace_back(outcomes[i] ? Error(Errc::cancelled, "had agreed, and has not stepped")
                                       : outcomes[i].error());
      owners_[i].optimizer.with(call_options()).rpc_async<&RemoteOptimizer::abort>(open->report.step).forget();
    }
  }
  finish(open, std::move(results), std::move(verdict));
}

void DistributedOptimizer::State::commit(const Open& open) {
  std::vector<Future<StepDone>> futures;
  {
    Ambient ambient = outside_contexts();
    const AmbientSwap swap(&ambient);
    futures = call_all<StepDone>([&](const Owner& owner) {
      return owner.optimizer.with(call_options())
          .rpc_async<&RemoteOptimizer::commit>(open->report.step, open->report.scale);
    });
  }
  gather(std::move(futures), [self = shared_from_this(), open](std::vector<Result<StepDone>> outcomes) {
    self->finish(open, std::move(outcomes), {});
  });
}

void DistributedOptimizer::State::finish(const Open& open, std::vector<Result<StepDone>> outcomes,
                                         Result<void> verdict) {
  std::uint64_t stepped = 0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i]) stepped += outcomes[i]->stepped;
    open->report.owners.push_back({owners_[i].worker, std::move(outcomes[i])});
  }
  {
    const std::lock_guard lock(mutex_);
    report_ = open->report;
  }
  if (verdict) verdict = check_owners(open->report);
  if (!verdict) return settle(open, verdict.error());
  if (stepped == 0) {
    return settle(open,
                  Error(Errc::bad_arguments, "no parameter of this optimizer has a gradient in autograd context " +
                                                 to_string(open->context->id()) +
                                                 ": nothing was stepped; are they the ones the loss was computed "
                                                 "from?"));
  }
  settle(open, open->report);
}

void DistributedOptimizer::State::settle(const Open& open, Result<StepReport> outcome) {
  end_turn();
  open->promise.set(std::move(outcome));
}

// ---- what users read and set

StepReport DistributedOptimizer::State::last_report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

double DistributedOptimizer::State::lr(std::size_t group) const {
  const std::lock_guard lock(mutex_);
  return learning_rate(algorithms_[group]);
}

void DistributedOptimizer::State::set_lr(std::size_t group, double lr) {
  const std::lock_guard lock(mutex_);
  set_learning_rate(algorithms_[group], lr);
}

}  // namespace caftan::optim
