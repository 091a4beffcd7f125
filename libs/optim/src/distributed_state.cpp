#include "distributed_state.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "adding.hpp"
#include "caftan/optim/clipping.hpp"
#include "caftan/rpc/collect.hpp"
#include "closure_step.hpp"
#include "saving.hpp"

namespace caftan::optim {
namespace {

std::string sentence(const OwnerStep& owner) {
  if (!owner.outcome) return owner.worker + ": " + owner.outcome.error().message();
  return owner.worker + " has stepped " + std::to_string(owner.outcome->stepped) + " parameters";
}

/// Returns the first failure, with the replies of all owners.
Result<void> check_owners(const StepReport& report) {
  const Error* first = nullptr;
  std::string text = "step " + std::to_string(report.step.value) + " failed";
  for (const OwnerStep& owner : report.owners) {
    text += "; " + sentence(owner);
    if (owner.outcome) continue;
    // `cancelled` is the outcome of an owner that had agreed to a step which another owner's error stopped: that error
    // is the cause.
    if (!first || first->code() == Errc::cancelled) first = &owner.outcome.error();
  }
  if (!first) return {};
  return Error(first->code(), first->worker(), std::move(text), std::make_shared<Error>(*first));
}

}  // namespace

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

Ambient outside_contexts() {
  Ambient ambient = Ambient::capture();
  ambient.autograd_context.reset();
  return ambient;
}

struct DistributedOptimizer::State::OpenStep {
  std::shared_ptr<autograd::ContextRecord> context;
  Promise<StepReport> promise;
  StepReport report;      // guarded by the mutex of State once the step is committed
  bool answered = false;  // guarded by the state's mutex
};

std::optional<base::Duration> DistributedOptimizer::State::wait() const {
  const auto caller = caller_.lock();
  const base::Duration timeout = options_.timeout.value_or(caller ? caller->default_timeout() : base::Duration::zero());
  if (timeout <= base::Duration::zero()) return std::nullopt;
  return timeout;
}

base::TimePoint DistributedOptimizer::State::wait_until() const {
  const Ambient* const ambient = Ambient::current();
  const base::TimePoint inherited = ambient ? ambient->deadline : base::kNever;
  const auto caller = caller_.lock();
  const std::optional<base::Duration> longest = wait();
  if (!caller || !longest) return inherited;
  const base::TimePoint now = caller->executor().clock().now();
  return *longest < base::kNever - now ? std::min(inherited, now + *longest) : inherited;
}

// ---- steps

Future<StepReport> DistributedOptimizer::State::step(std::shared_ptr<autograd::ContextRecord> context) {
  if (Result<void> outside = check_outside(this, "a step"); !outside) {
    return make_ready_future<StepReport>(outside.error());
  }
  if (rates_.need_closure()) {
    return make_ready_future<StepReport>(
        Error(Errc::bad_arguments, "LBFGS evaluates the loss several times in a step: pass a closure to step"));
  }
  auto open = std::make_shared<OpenStep>(OpenStep{std::move(context), Promise<StepReport>(caller_), {}});
  Future<StepReport> future = open->promise.future();
  turns_->take({[self = shared_from_this(), open] { self->begin_step(open); },
                [self = shared_from_this(), open](const Error& error) {
                  self->answer(open, Error(error.code(), error.worker(), "a step " + error.text()));
                }});
  return future;
}

void DistributedOptimizer::State::begin_step(const Open& open) {
  if (Result<void> fit = autograd::check_has_gradients(*open->context); !fit) return complete(open, fit.error());
  {
    const base::LockGuard lock(mutex_);
    open->report.step = last_ = StepNumber{last_.value + 1};
  }
  if (has_two_phases()) {
    prepare(open);
  } else {
    step_at_once(open);
  }
}

StepOrder DistributedOptimizer::State::order_for(const Owner& owner, StepNumber step) const {
  return {step, rates_.lrs_of(owner.groups), options_.clip_norm > 0};
}

void DistributedOptimizer::State::step_at_once(const Open& open) {
  std::vector<Future<StepDone>> futures;
  autograd::ContextView(open->context).bind([&] {
    futures = call_all<StepDone>([&](const Owner& owner) {
      const StepOrder order = order_for(owner, open->report.step);
      const Momenta momenta = rates_.momenta_of(owner.groups);
      const auto call = owner.optimizer.with(call_options());
      return momenta.empty() ? call.rpc_async<&RemoteOptimizer::step>(order)
                             : call.rpc_async<&RemoteOptimizer::step_with>(order, momenta);
    });
  })();
  collect_all_results(std::move(futures))
      .then([self = shared_from_this(), open](Result<std::vector<Result<StepDone>>> collected) {
        std::vector<Result<StepDone>> outcomes = *std::move(collected);
        self->finish(open, std::move(outcomes), {});
      })
      .forget();
}

void DistributedOptimizer::State::prepare(const Open& open) {
  std::vector<Future<Prepared>> futures;
  autograd::ContextView(open->context).bind([&] {
    futures = call_all<Prepared>([&](const Owner& owner) {
      const StepOrder order = order_for(owner, open->report.step);
      const Momenta momenta = rates_.momenta_of(owner.groups);
      const auto call = owner.optimizer.with(call_options());
      return momenta.empty() ? call.rpc_async<&RemoteOptimizer::prepare>(order)
                             : call.rpc_async<&RemoteOptimizer::prepare_with>(order, momenta);
    });
  })();
  collect_all_results(std::move(futures))
      .then([self = shared_from_this(), open](Result<std::vector<Result<Prepared>>> collected) {
        std::vector<Result<Prepared>> outcomes = *std::move(collected);
        self->on_prepared(open, std::move(outcomes));
      })
      .forget();
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
  if (options_.clip_norm > 0) open->report.scale = clip_scale(squared_norm, options_.clip_norm);
  commit(open);
}

void DistributedOptimizer::State::give_up(const Open& open, const std::vector<Result<Prepared>>& outcomes,
                                          Result<void> verdict) {
  std::vector<Result<StepDone>> results;
  for (const Result<Prepared>& outcome : outcomes) {
    results.emplace_back(outcome ? Error(Errc::cancelled, "had agreed, and has not stepped") : outcome.error());
  }
  for (Future<void>& aborted : call_decided<void>([step = open->report.step](const auto& optimizer) {
         return optimizer.template rpc_async<&RemoteOptimizer::abort>(step);
       })) {
    aborted.forget();
  }
  finish(open, std::move(results), std::move(verdict));
}

void DistributedOptimizer::State::commit(const Open& open) {
  for (const Owner& owner : owners_) {
    open->report.owners.push_back(
        {owner.worker, Error(Errc::timeout, owner.worker, "was sent the commit, and has not confirmed it yet")});
  }
  turns_->bound(wait_until(), "step " + std::to_string(open->report.step.value),
                [self = shared_from_this(), open] { self->stop_waiting(open); });
  auto futures = call_decided<StepDone>([step = open->report.step, scale = open->report.scale](const auto& optimizer) {
    return optimizer.template rpc_async<&RemoteOptimizer::commit>(step, scale);
  });
  for (std::size_t i = 0; i < futures.size(); ++i) {
    futures[i] = std::move(futures[i]).then([self = shared_from_this(), open, i](Result<StepDone> outcome) {
      self->on_committed(open, i, outcome);
      return outcome;
    });
  }
  collect_all_results(std::move(futures))
      .then([self = shared_from_this(), open](Result<std::vector<Result<StepDone>>> collected) {
        std::vector<Result<StepDone>> outcomes = *std::move(collected);
        self->finish(open, std::move(outcomes), {});
      })
      .forget();
}

void DistributedOptimizer::State::on_committed(const Open& open, std::size_t owner, const Result<StepDone>& outcome) {
  const base::LockGuard lock(mutex_);
  open->report.owners[owner].outcome = outcome;
}

void DistributedOptimizer::State::stop_waiting(const Open& open) {
  StepReport report;
  {
    const base::LockGuard lock(mutex_);
    report = report_ = open->report;
  }
  std::string text = "step " + std::to_string(report.step.value) + " is committed, not yet confirmed";
  std::string first;
  for (const OwnerStep& owner : report.owners) {
    text += "; " + sentence(owner);
    if (first.empty() && !owner.outcome) first = owner.worker;
  }
  answer(open, Error(Errc::timeout, first, std::move(text)));
}

void DistributedOptimizer::State::finish(const Open& open, std::vector<Result<StepDone>> outcomes,
                                         Result<void> verdict) {
  std::uint64_t stepped = 0;
  StepReport report;
  {
    const base::LockGuard lock(mutex_);
    open->report.owners.clear();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i]) stepped += outcomes[i]->stepped;
      open->report.owners.push_back({owners_[i].worker, std::move(outcomes[i])});
    }
    report = report_ = open->report;
  }
  if (verdict) verdict = check_owners(report);
  if (!verdict) return complete(open, verdict.error());
  if (stepped == 0) {
    return complete(open,
                    Error(Errc::bad_arguments, "no parameter of this optimizer has a gradient in autograd context " +
                                                   to_string(open->context->id()) +
                                                   ": nothing was stepped; are they the ones the loss was computed "
                                                   "from?"));
  }
  complete(open, std::move(report));
}

void DistributedOptimizer::State::complete(const Open& open, Result<StepReport> outcome) {
  turns_->end();
  answer(open, std::move(outcome));
}

void DistributedOptimizer::State::answer(const Open& open, Result<StepReport> outcome) {
  {
    const base::LockGuard lock(mutex_);
    if (std::exchange(open->answered, true)) return;
  }
  open->promise.set(std::move(outcome));
}

Result<StepReport> DistributedOptimizer::State::step(const Closure& closure) {
  if (Result<void> outside = check_outside(this, "a step"); !outside) return outside.error();
  if (rates_.need_closure()) {
    ClosureStep searched(*this);
    if (Result<void> begun = searched.wait(); !begun) return begun.error();
    return searched.run(closure);
  }
  const Result<Evaluation> value = closure();
  if (!value) return value.error();
  Result<StepReport> report = step(value->context.record()).result();
  if (!report) return report;
  report->loss = value->loss;
  report->evaluations = 1;
  const base::LockGuard lock(mutex_);
  report_ = *report;
  return report;
}

// ---- the other jobs

Future<wire::Bytes> DistributedOptimizer::State::save() {
  if (Result<void> outside = check_outside(this, "saving"); !outside) {
    return make_ready_future<wire::Bytes>(outside.error());
  }
  const auto job = std::make_shared<Save>(shared_from_this());
  Future<wire::Bytes> future = job->future();
  turns_->take({[job] { job->begin(); }, [job](const Error& error) { job->refuse(error); }});
  return future;
}

Future<void> DistributedOptimizer::State::load(wire::ByteView state) {
  if (Result<void> outside = check_outside(this, "loading"); !outside) {
    return make_ready_future<void>(outside.error());
  }
  SavedState saved;
  if (Result<void> read = saved.read(state); !read) return make_ready_future<void>(read.error());
  const auto job = std::make_shared<Load>(shared_from_this(), std::move(saved));
  Future<void> future = job->future();
  turns_->take({[job] { job->begin(); }, [job](const Error& error) { job->refuse(error); }});
  return future;
}

Future<void> DistributedOptimizer::State::add_group(std::vector<Share> shares, Algorithm algorithm) {
  const auto job = std::make_shared<Adding>(shared_from_this(), std::move(shares), std::move(algorithm));
  Future<void> future = job->future();
  turns_->take({[job] { job->begin(); }, [job](const Error& error) { job->refuse(error); }});
  return future;
}

// ---- what users read and set

StepReport DistributedOptimizer::State::last_report() const {
  const base::LockGuard lock(mutex_);
  return report_;
}

StepNumber DistributedOptimizer::State::last_step() const {
  const base::LockGuard lock(mutex_);
  return last_;
}

void DistributedOptimizer::State::set_last_step(StepNumber step) {
  const base::LockGuard lock(mutex_);
  last_ = step;
}

}  // namespace caftan::optim
