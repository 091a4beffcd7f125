#include "distributed_state.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "added_group.hpp"
#include "caftan/optim/clipping.hpp"
#include "caftan/optim/internal/state_bulk.hpp"
#include "caftan/rpc/collect.hpp"
#include "closure_step.hpp"

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

/// Returns the first failure, with the owner's name.
template <class U>
Result<void> first_failure(const std::vector<Owner>& owners, const std::vector<Result<U>>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i]) return outcomes[i].error().at(owners[i].worker);
  }
  return {};
}

/// As first_failure, with the numbers of the owner's parameters in the user's list: an owner numbers only its own.
Result<void> first_refusal(const std::vector<Owner>& owners, const std::vector<Result<void>>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i]) continue;
    const Error placed = outcomes[i].error().at(owners[i].worker);
    return Error(placed.code(), placed.worker(),
                 placed.text() + " (of the parameters at " + owners[i].worker + numbers_of(owners[i].parameters) + ")");
  }
  return {};
}

/// Checks whether all owners have made the same last step. Precondition: no outcome is an error.
Result<void> check_steps(const std::vector<Owner>& owners, const std::vector<Result<OwnerState>>& parts) {
  std::string text = "the owners are at different steps, so they have no common state:";
  bool alike = true;
  StepNumber first;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const StepNumber made = std::max(parts[i]->step, owners[i].since);
    if (i == 0) first = made;
    alike = alike && made == first;
    text += " " + owners[i].worker + " at " + std::to_string(made.value) + (i + 1 < owners.size() ? "," : "");
  }
  if (alike) return {};
  return Error(Errc::bad_arguments, text + "; save after the next step that all make, or load an earlier state");
}

Result<OwnerState> read_bulk(const Result<OwnerBulk>& bulk) {
  if (!bulk) return bulk.error();
  Result<wire::Bytes> state = from_bulk(bulk->state);
  if (!state) return state.error();
  return OwnerState{bulk->step, *std::move(state)};
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

// ---- saving and loading

/// The caller of a load, or of adding a group: gets the outcome or the time-out, whichever comes first.
struct DistributedOptimizer::State::Asked {
  Promise<void> promise;
  std::atomic<bool> answered{false};

  explicit Asked(Promise<void> to) : promise(std::move(to)) {}
  void answer(Result<void> outcome) {
    if (!answered.exchange(true)) promise.set(std::move(outcome));
  }
};

struct DistributedOptimizer::State::OpenLoad : Asked {
  SavedState saved;
  OpenLoad(Promise<void> to, SavedState kept) : Asked(std::move(to)), saved(std::move(kept)) {}
};

Future<wire::Bytes> DistributedOptimizer::State::save() {
  if (Result<void> outside = check_outside(this, "saving"); !outside) {
    return make_ready_future<wire::Bytes>(outside.error());
  }
  auto promise = std::make_shared<Promise<wire::Bytes>>(caller_);
  Future<wire::Bytes> future = promise->future();
  const auto begin = [self = shared_from_this(), promise] {
    auto futures = self->call_all<OwnerState>([&](const Owner& owner) { return self->cut(owner); });
    collect_all_results(std::move(futures))
        .then([self, promise](Result<std::vector<Result<OwnerState>>> collected) {
          Result<wire::Bytes> bytes = self->write_saved(*std::move(collected));
          self->turns_->end();
          promise->set(std::move(bytes));
        })
        .forget();
  };
  turns_->take({begin, [promise](const Error& error) {
                  promise->set(Error(error.code(), error.worker(), "saving " + error.text()));
                }});
  return future;
}

Future<OwnerState> DistributedOptimizer::State::cut(const Owner& owner) const {
  const auto optimizer = owner.optimizer.with(call_options());
  return optimizer.rpc_async<&RemoteOptimizer::cut>().then([optimizer](Result<OwnerState> part) {
    if (part || part.error().code() != Errc::limit_exceeded) return make_ready_future<OwnerState>(std::move(part));
    return optimizer.rpc_async<&RemoteOptimizer::cut_bulk>().then(
        [](const Result<OwnerBulk>& bulk) { return read_bulk(bulk); });
  });
}

Future<void> DistributedOptimizer::State::stage(const Owner& owner, wire::Bytes part) const {
  const auto optimizer = owner.optimizer.with(call_options());
  const auto kept = std::make_shared<wire::Bytes>(std::move(part));
  return optimizer.rpc_async<&RemoteOptimizer::stage_state>(*kept).then([optimizer, kept](Result<void> staged) {
    if (staged || staged.error().code() != Errc::limit_exceeded) return make_ready_future<void>(std::move(staged));
    return optimizer.rpc_async<&RemoteOptimizer::stage_bulk>(to_bulk(std::move(*kept)));
  });
}

Result<wire::Bytes> DistributedOptimizer::State::write_saved(std::vector<Result<OwnerState>> parts) {
  if (const Result<void> well = first_failure(owners_, parts); !well) return well.error();
  if (const Result<void> alike = check_steps(owners_, parts); !alike) return alike.error();
  SavedState saved;
  {
    const base::LockGuard lock(mutex_);
    saved.step = last_;
  }
  rates_.write_to(saved);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Owner& owner = owners_[i];
    saved.owners.push_back({owner.worker, owner.groups, std::move(parts[i]->state), owner.parameters, owner.names});
  }
  wire::Bytes bytes;
  if (Result<void> written = saved.write(bytes); !written) return written.error();
  return bytes;
}

Result<void> DistributedOptimizer::State::check_saved(const SavedState& saved) const {
  if (saved.lrs.size() != rates_.groups()) {
    return Error(Errc::bad_arguments,
                 "the saved optimizer is of another model or placement: " + std::to_string(saved.lrs.size()) +
                     " parameter groups, here are " + std::to_string(rates_.groups()));
  }
  if (!saved.initial_lrs.empty() && saved.initial_lrs.size() != rates_.groups()) {
    return Error(Errc::malformed_payload, "the saved optimizer has initial rates of another number of groups");
  }
  if (!saved.momenta.empty() && saved.momenta.size() != rates_.groups()) {
    return Error(Errc::malformed_payload, "the saved optimizer has momenta of another number of groups");
  }
  return {};
}

Future<void> DistributedOptimizer::State::load(wire::ByteView state) {
  const auto refuse = [](Error error) { return make_ready_future<void>(std::move(error)); };
  if (Result<void> outside = check_outside(this, "loading"); !outside) return refuse(outside.error());
  SavedState saved;
  if (Result<void> read = saved.read(state); !read) return refuse(read.error());

  auto open = std::make_shared<OpenLoad>(Promise<void>(caller_), std::move(saved));
  Future<void> future = open->promise.future();
  turns_->take(
      {[self = shared_from_this(), open] { self->begin_load(open); },
       [open](const Error& error) { open->answer(Error(error.code(), error.worker(), "loading " + error.text())); }});
  return future;
}

void DistributedOptimizer::State::begin_load(const std::shared_ptr<OpenLoad>& open) {
  const auto refuse = [&](const Error& error) {
    turns_->end();
    open->answer(error);
  };
  if (const Result<void> same = check_saved(open->saved); !same) return refuse(same.error());
  auto parts = place_parts(open->saved, std::vector<Placed>(owners_.begin(), owners_.end()));
  if (!parts) return refuse(parts.error());
  std::vector<Future<void>> futures;
  for (std::size_t i = 0; i < owners_.size(); ++i) futures.push_back(stage(owners_[i], std::move((*parts)[i])));
  collect_all_results(std::move(futures))
      .then([self = shared_from_this(), open](Result<std::vector<Result<void>>> collected) {
        std::vector<Result<void>> outcomes = *std::move(collected);
        if (const Result<void> staged = first_refusal(self->owners_, outcomes); !staged) {
          for (Future<void>& dropped : self->call_decided<void>([](const auto& optimizer) {
                 return optimizer.template rpc_async<&RemoteOptimizer::drop_state>();
               })) {
            dropped.forget();
          }
          self->turns_->end();
          return open->answer(staged);
        }
        self->take_states(open);
      })
      .forget();
}

void DistributedOptimizer::State::take_states(const std::shared_ptr<OpenLoad>& open) {
  turns_->bound(wait_until(), "loading a saved state", [open] {
    open->answer(Error(Errc::timeout,
                       "every owner was sent the order to take the saved state over, not all have confirmed it yet"));
  });
  auto futures = call_decided<void>([step = open->saved.step](const auto& optimizer) {
    return optimizer.template rpc_async<&RemoteOptimizer::take_state>(step);
  });
  collect_all_results(std::move(futures))
      .then([self = shared_from_this(), open](Result<std::vector<Result<void>>> collected) {
        std::vector<Result<void>> outcomes = *std::move(collected);
        {
          const base::LockGuard lock(self->mutex_);
          self->last_ = open->saved.step;
        }
        self->rates_.take(open->saved);
        self->turns_->end();
        open->answer(first_failure(self->owners_, outcomes));
      })
      .forget();
}

// ---- groups that come later

struct DistributedOptimizer::State::OpenGroup : Asked {
  std::shared_ptr<AddedGroup> group;
  Algorithm algorithm;
  OpenGroup(Promise<void> to, std::shared_ptr<AddedGroup> added, Algorithm stepped_by)
      : Asked(std::move(to)), group(std::move(added)), algorithm(std::move(stepped_by)) {}
};

Future<void> DistributedOptimizer::State::add_group(std::vector<Share> shares, Algorithm algorithm) {
  auto open = std::make_shared<OpenGroup>(Promise<void>(caller_),
                                          std::make_shared<AddedGroup>(caller_, std::move(shares), call_options()),
                                          std::move(algorithm));
  Future<void> future = open->promise.future();
  turns_->take({[self = shared_from_this(), open] { self->stage_group(open); },
                [open](const Error& error) {
                  open->answer(Error(error.code(), error.worker(), "adding a group of parameters " + error.text()));
                }});
  return future;
}

void DistributedOptimizer::State::stage_group(const std::shared_ptr<OpenGroup>& open) {
  if (Result<void> named = open->group->check_names(owners_); !named) {
    turns_->end();
    return open->answer(named);
  }
  open->group->stage(owners_)
      .then([self = shared_from_this(), open](const Result<void>& staged) {
        if (staged) return self->take_group(open);
        self->turns_->end();
        open->answer(staged);
      })
      .forget();
}

void DistributedOptimizer::State::take_group(const std::shared_ptr<OpenGroup>& open) {
  turns_->bound(wait_until(), "adding a group of parameters", [open] {
    open->answer(
        Error(Errc::timeout, "every owner was sent the order to add the group, not all have confirmed it yet"));
  });
  StepNumber last;
  {
    const base::LockGuard lock(mutex_);
    last = last_;
  }
  open->group->take(last)
      .then([self = shared_from_this(), open, last](const Result<void>& taken) {
        open->group->record(static_cast<std::uint32_t>(self->rates_.groups()), last, self->owners_);
        self->rates_.add(open->algorithm);
        self->turns_->end();
        open->answer(taken);
      })
      .forget();
}

// ---- what users read and set

StepReport DistributedOptimizer::State::last_report() const {
  const base::LockGuard lock(mutex_);
  return report_;
}

}  // namespace caftan::optim
