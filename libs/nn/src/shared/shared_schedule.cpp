#include "caftan/nn/internal/shared_schedule.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace caftan::nn {
namespace {

using namespace shared_action;

/// Counters come first: a context that one worker made long ago is older than a recent one of any other worker.
bool is_older(const ContextId& one, const ContextId& other) {
  return std::tie(one.number, one.worker, one.incarnation) < std::tie(other.number, other.worker, other.incarnation);
}

std::string name_of(const ContextId& context) { return "context " + to_string(context); }
std::string name_of(TrainerNumber trainer) { return "trainer " + std::to_string(trainer.value); }

}  // namespace

Result<SharedSchedule> SharedSchedule::make(const ConsistencyOptions& options, std::uint32_t trainers,
                                            ModelVersion first) {
  if (Result<void> fits = check_consistency(options, trainers); !fits) return fits.error();
  return SharedSchedule(options, trainers, first);
}

// ---- calls

SharedActions SharedSchedule::on_call(const ContextId& context, TrainerNumber trainer) {
  if (Error why = why_refused(context, trainer); why.code() != Errc::ok) return {RefuseCalls{context, 1, why}};
  const auto [at, is_new] = contexts_.try_emplace(context, Entry{.trainer = trainer});
  Entry& entry = at->second;
  if (entry.phase == Phase::open) {
    ++entry.running;
    return {Run{context, entry.read}};
  }
  if (is_new) waiting_.push_back(context);
  ++entry.waiting;
  SharedActions actions;
  admit(actions);
  return actions;
}

/// Returns why a call of the context can neither run nor wait; ok if it can.
Error SharedSchedule::why_refused(const ContextId& context, TrainerNumber trainer) const {
  if (trainer.value >= live_.size()) {
    return Error(Errc::bad_arguments, name_of(trainer) + " of a module with " + std::to_string(live_.size()) +
                                          " trainers: they are numbered from 0");
  }
  if (!live_[trainer.value]) return Error(Errc::peer_down, name_of(trainer) + " has left or is lost");
  const auto known = contexts_.find(context);
  if (known == contexts_.end()) {
    if (options_.lease == LeaseOrder::queue || !has_older(context)) return Error();
    return Error(Errc::lease_conflict,
                 "an older context than " + to_string(context) +
                     " has the lease of this module or waits for it: release this one and begin again with a new one");
  }
  const Entry& entry = known->second;
  if (entry.trainer != trainer) {
    return Error(Errc::bad_arguments,
                 name_of(context) + " belongs to " + name_of(entry.trainer) + ", not to " + name_of(trainer));
  }
  if (entry.ended) return Error(Errc::context_released, name_of(context) + " has ended");
  if (entry.phase == Phase::delivered || entry.phase == Phase::over) {
    return Error(Errc::bad_arguments,
                 name_of(context) + " has made its step of this module: begin a new context for the next one");
  }
  return Error();
}

bool SharedSchedule::has_older(const ContextId& context) const {
  if (holder_ && is_older(*holder_, context)) return true;
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const ContextId& other) { return is_older(other, context); });
}

bool SharedSchedule::may_open(const Entry& entry) const {
  switch (options_.mode) {
    case ConsistencyMode::locked:
      return !holder_;
    case ConsistencyMode::versioned:
      return true;
    case ConsistencyMode::sync:
      break;
  }
  // One context of a trainer in a round.
  return std::none_of(contexts_.begin(), contexts_.end(), [&](const auto& known) {
    const Entry& other = known.second;
    const bool takes_part =
        other.phase == Phase::delivered || (other.phase == Phase::open && !other.ended && other.read == version_);
    return takes_part && other.trainer == entry.trainer;
  });
}

void SharedSchedule::open(const ContextId& context, Entry& entry, SharedActions& actions) {
  entry.phase = Phase::open;
  entry.read = version_;
  if (options_.mode == ConsistencyMode::locked) {
    holder_ = context;
  } else {
    entry.is_pinned = true;
    actions.push_back(Pin{version_});
  }
  entry.running = std::exchange(entry.waiting, 0);
  actions.push_back(Run{context, entry.read, entry.running});
}

/// Runs what waits and may run now.
void SharedSchedule::admit(SharedActions& actions) {
  if (applied_) return;  // CM-2
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Entry& entry = contexts_.at(*at);
    if (!may_open(entry)) {
      ++at;
      continue;
    }
    open(*at, entry, actions);
    at = waiting_.erase(at);
  }
  if (evaluations_ == 0) return;
  actions.push_back(Pin{version_, evaluations_});
  actions.push_back(RunEvaluations{version_, std::exchange(evaluations_, 0)});
}

SharedActions SharedSchedule::on_return(const ContextId& context) {
  SharedActions actions;
  const auto known = contexts_.find(context);
  if (known == contexts_.end() || known->second.running == 0) return actions;
  --known->second.running;
  retire(context, actions);
  admit(actions);
  return actions;
}

// ---- ends of contexts

/// Gives back what a context holds, once neither a call nor a step of it needs that.
void SharedSchedule::retire(const ContextId& context, SharedActions& actions) {
  const auto known = contexts_.find(context);
  Entry& entry = known->second;
  const bool is_done = entry.phase == Phase::over || (entry.ended && entry.phase != Phase::delivered);
  if (!is_done || entry.running > 0) return;
  if (std::exchange(entry.is_pinned, false)) actions.push_back(Unpin{entry.read});
  if (holder_ == context) holder_.reset();
  if (entry.ended) contexts_.erase(known);
}

/// The gradients of the context were applied or refused.
void SharedSchedule::finish(const ContextId& context, SharedActions& actions) {
  contexts_.at(context).phase = Phase::over;
  retire(context, actions);
}

void SharedSchedule::end(const ContextId& context, const Error& why, SharedActions& actions) {
  Entry& entry = contexts_.at(context);
  entry.ended = true;
  if (entry.phase == Phase::waiting) {
    actions.push_back(RefuseCalls{context, std::exchange(entry.waiting, 0), why});
    std::erase(waiting_, context);
  }
  retire(context, actions);
}

SharedActions SharedSchedule::on_end(const ContextId& context) {
  SharedActions actions;
  const auto known = contexts_.find(context);
  if (known == contexts_.end() || known->second.ended) return actions;
  end(context, Error(Errc::context_released, name_of(context) + " has ended"), actions);
  admit(actions);
  return actions;
}

SharedActions SharedSchedule::on_gone(TrainerNumber trainer) {
  SharedActions actions;
  if (trainer.value >= live_.size() || !live_[trainer.value]) return actions;
  live_[trainer.value] = false;
  std::vector<ContextId> its_contexts;
  for (const auto& [context, entry] : contexts_) {
    if (entry.trainer == trainer && !entry.ended) its_contexts.push_back(context);
  }
  for (const ContextId& context : its_contexts) {
    end(context, Error(Errc::peer_down, name_of(trainer) + " has left or is lost"), actions);
  }
  step_next(actions);
  admit(actions);
  return actions;
}

// ---- steps

SharedActions SharedSchedule::on_step(const ContextId& context, std::uint64_t batch) {
  if (Error why = why_no_step(context); why.code() != Errc::ok) return {RefuseStep{context, why}};
  SharedActions actions;
  Entry& entry = contexts_.at(context);
  if (options_.mode == ConsistencyMode::sync && (applied_ || entry.read < version_)) {
    actions.push_back(
        RefuseStep{context, Error(Errc::round_closed, "the round of version " + std::to_string(entry.read.value) +
                                                          " was closed without " + name_of(context))});
    finish(context, actions);
    return actions;
  }
  entry.batch = batch;
  entry.phase = Phase::delivered;
  // Unpinned before the step: a version that no other context reads is updated in place.
  if (std::exchange(entry.is_pinned, false)) actions.push_back(Unpin{entry.read});
  delivered_.push_back(context);
  step_next(actions);
  return actions;
}

/// Returns why the context cannot deliver gradients; ok if it can.
Error SharedSchedule::why_no_step(const ContextId& context) const {
  const auto known = contexts_.find(context);
  if (known == contexts_.end() || known->second.phase == Phase::waiting) {
    return Error(Errc::bad_arguments, name_of(context) + " has read nothing of this module: call it before the step");
  }
  const Entry& entry = known->second;
  if (entry.ended) return Error(Errc::context_released, name_of(context) + " has ended");
  if (entry.phase != Phase::open) {
    return Error(Errc::bad_arguments,
                 name_of(context) + " has made its step of this module: begin a new context for the next one");
  }
  if (entry.running > 0) {
    return Error(Errc::bad_arguments, std::to_string(entry.running) + " calls of " + name_of(context) +
                                          " still run: wait for their results before the step");
  }
  return Error();
}

/// Begins the next step, if there is one and none is being applied.
void SharedSchedule::step_next(SharedActions& actions) {
  if (applied_) return;
  if (options_.mode == ConsistencyMode::sync) return close_round(actions);
  while (!delivered_.empty()) {
    const ContextId context = delivered_.front();
    delivered_.pop_front();
    const std::uint64_t staleness = version_.value - contexts_.at(context).read.value;
    if (!options_.max_staleness || staleness <= *options_.max_staleness) return apply({context}, actions);
    actions.push_back(RefuseStep{
        context, Error(Errc::stale_gradient, "the gradient of " + name_of(context) + " is " +
                                                 std::to_string(staleness) + " steps behind, max_staleness is " +
                                                 std::to_string(*options_.max_staleness) + ": compute it again")});
    finish(context, actions);
  }
}

bool SharedSchedule::has_delivered(TrainerNumber trainer) const {
  return std::any_of(delivered_.begin(), delivered_.end(),
                     [&](const ContextId& context) { return contexts_.at(context).trainer == trainer; });
}

std::vector<TrainerNumber> SharedSchedule::awaited() const {
  std::vector<TrainerNumber> trainers;
  if (options_.mode != ConsistencyMode::sync || applied_) return trainers;
  for (std::uint32_t trainer = 0; trainer < live_.size(); ++trainer) {
    if (live_[trainer] && !has_delivered({trainer})) trainers.push_back({trainer});
  }
  return trainers;
}

/// Returns whether the round waits for no trainer any more.
bool SharedSchedule::is_complete() const {
  for (std::uint32_t trainer = 0; trainer < live_.size(); ++trainer) {
    if (live_[trainer] && !has_delivered({trainer})) return false;
  }
  return true;
}

void SharedSchedule::close_round(SharedActions& actions) {
  if (delivered_.empty()) return;
  const bool is_enough = options_.quorum && delivered_.size() >= *options_.quorum;
  if (!is_complete() && !(is_enough && is_late_)) {
    if (is_enough && !timer_runs_) {
      timer_runs_ = true;
      actions.push_back(StartTimer{++timer_});
    }
    return;
  }
  timer_runs_ = false;
  is_late_ = false;
  std::vector<ContextId> contexts(delivered_.begin(), delivered_.end());
  delivered_.clear();
  std::sort(contexts.begin(), contexts.end(), [&](const ContextId& one, const ContextId& other) {
    return contexts_.at(one).trainer < contexts_.at(other).trainer;
  });
  apply(contexts, actions);
}

SharedActions SharedSchedule::on_straggler_timeout(std::uint64_t timer) {
  SharedActions actions;
  if (!timer_runs_ || timer != timer_) return actions;
  is_late_ = true;
  step_next(actions);
  return actions;
}

void SharedSchedule::apply(const std::vector<ContextId>& contexts, SharedActions& actions) {
  applied_ = StepRecord{{version_.value + 1}, {}};
  for (const ContextId& context : contexts) {
    const Entry& entry = contexts_.at(context);
    applied_->contributions.push_back({entry.trainer, context, entry.batch, entry.read});
  }
  actions.push_back(Apply{*applied_});
}

SharedActions SharedSchedule::on_applied(const Result<void>& outcome) {
  SharedActions actions;
  if (!applied_) return actions;
  const StepRecord step = *std::exchange(applied_, std::nullopt);
  if (outcome) version_ = step.step;
  for (const Contribution& c : step.contributions) {
    if (outcome) {
      actions.push_back(AnswerStep{c.context, step.step});
    } else {
      actions.push_back(RefuseStep{c.context, outcome.error()});
    }
    finish(c.context, actions);
  }
  step_next(actions);
  admit(actions);
  return actions;
}

// ---- evaluations

SharedActions SharedSchedule::on_evaluate() {
  SharedActions actions;
  ++evaluations_;
  admit(actions);
  return actions;
}

SharedActions SharedSchedule::on_evaluated(ModelVersion version) { return {Unpin{version}}; }

}  // namespace caftan::nn
