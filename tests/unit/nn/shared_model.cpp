#include "shared_model.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <variant>

#include "caftan/nn/internal/shared_schedule.hpp"
#include "histories.hpp"

namespace caftan::nn::model {
namespace {

using namespace shared_action;

std::uint64_t gradient_of(std::uint64_t parameters, TrainerNumber trainer, std::uint64_t batch) {
  return mix64(parameters ^ mix64(batch * 31 + trainer.value));
}

/// Returns the parameters after a step, which depend on the order of the gradients and on their number, as a sum in
/// floating point does.
std::uint64_t stepped(std::uint64_t parameters, const std::vector<std::uint64_t>& gradients) {
  std::uint64_t sum = 0;
  for (const std::uint64_t gradient : gradients) sum = mix64(sum + gradient);
  return mix64(parameters + sum / gradients.size());
}

struct Context {
  ContextId id;
  TrainerNumber trainer;
  std::uint64_t batch = 0;
  std::uint32_t waiting = 0;
  std::uint32_t running = 0;
  std::optional<ModelVersion> read{};
  std::uint64_t seen = 0;  ///< the parameters as the context's first call saw them
  std::uint64_t gradient = 0;
  bool delivered = false;
  bool is_over = false;
  bool ended = false;

  bool may_call() const { return !delivered && !is_over && !ended; }
  bool may_step() const { return may_call() && read && running == 0; }
  bool has_lease() const { return read && !is_over && (!ended || running > 0 || delivered); }
};

class Reference {
 public:
  Reference(const History& history, std::vector<std::string>* trace)
      : options_(history.options),
        schedule_(SharedSchedule::make(history.options, history.trainers).value()),
        live_(history.trainers, true),
        made_(history.trainers, 0),
        trace_(trace) {
    values_[{0}] = parameters_;
    log_.mode = history.options.mode;
  }

  std::string run(const History& history) {
    for (const Step& step : history.steps) {
      take(step);
      if (!why_.empty()) return why_;
    }
    drain();
    if (why_.empty()) check_end();
    return why_;
  }

  const Reached& reached() const { return reached_; }

 private:
  // ---- events

  void take(const Step& step) {
    switch (step.act) {
      case Act::begin:
        return begin(step.a % static_cast<std::uint32_t>(live_.size()));
      case Act::call:
        return with(step.a, &Context::may_call, [&](Context& c) { call(c); });
      case Act::finish_call:
        return with(
            step.a, [](const Context& c) { return c.running > 0; }, [&](Context& c) { finish_call(c); });
      case Act::step:
        return with(step.a, &Context::may_step, [&](Context& c) { deliver(c); });
      case Act::end:
        return with(
            step.a, [](const Context& c) { return !c.ended; }, [&](Context& c) { end(c); });
      case Act::lose:
        return lose(step.a % static_cast<std::uint32_t>(live_.size()));
      case Act::apply:
        return finish_apply(true);
      case Act::fail_apply:
        return finish_apply(false);
      case Act::time_out:
        return time_out(step.a);
      case Act::evaluate:
        return evaluate();
      case Act::finish_evaluation:
        return finish_evaluation(step.a);
    }
  }

  template <class Fits, class Do>
  void with(std::uint32_t choice, Fits fits, Do act) {
    std::vector<Context*> found;
    for (auto& [id, context] : contexts_) {
      if (std::invoke(fits, context)) found.push_back(&context);
    }
    if (!found.empty()) act(*found[choice % found.size()]);
  }

  void begin(std::uint32_t trainer) {
    if (!live_[trainer]) return;
    const ContextId id{WorkerId{trainer}, Incarnation{7}, ++made_[trainer]};
    Context context{.id = id, .trainer = {trainer}, .batch = made_[trainer] * 10 + trainer};
    call(contexts_.emplace(id, context).first->second);
  }

  void call(Context& context) {
    say("call " + to_string(context.id));
    const bool is_known = context.waiting > 0 || context.read;
    must_die_ = !is_known && options_.lease == LeaseOrder::oldest_waits && has_older(context.id);
    if (!is_known) arrived_.push_back(context.id);
    ++context.waiting;
    const ContextId id = context.id;
    carry_out(schedule_.on_call(id, context.trainer));
    if (must_die_) wrong("a younger context waits: " + to_string(id));
  }

  bool has_older(const ContextId& id) const {
    const auto is_older = [&](const ContextId& other) {
      return std::pair(other.number, other.worker) < std::pair(id.number, id.worker);
    };
    return std::any_of(contexts_.begin(), contexts_.end(), [&](const auto& known) {
      return (known.second.has_lease() || (known.second.waiting > 0 && !known.second.read)) && is_older(known.first);
    });
  }

  void finish_call(Context& context) {
    say("return " + to_string(context.id));
    if (now(context) != context.seen) wrong("the parameters changed under a call of " + to_string(context.id));
    --context.running;
    const ContextId id = context.id;
    carry_out(schedule_.on_return(id));
    forget_if_done(id);
  }

  void deliver(Context& context) {
    say("step " + to_string(context.id));
    context.gradient = gradient_of(now(context), context.trainer, context.batch);
    context.delivered = true;
    deliveries_.push_back(context.id);
    carry_out(schedule_.on_step(context.id, context.batch));
  }

  void end(Context& context) {
    say("end " + to_string(context.id));
    const ContextId id = context.id;
    context.ended = true;
    carry_out(schedule_.on_end(id));
    forget_if_done(id);
  }

  void lose(std::uint32_t trainer) {
    if (!live_[trainer]) return;
    say("lose trainer " + std::to_string(trainer));
    ++reached_.lost;
    live_[trainer] = false;
    std::vector<ContextId> its;
    for (auto& [id, context] : contexts_) {
      if (context.trainer.value == trainer) its.push_back(id);
    }
    for (const ContextId& id : its) contexts_.at(id).ended = true;
    carry_out(schedule_.on_gone({trainer}));
    for (const ContextId& id : its) forget_if_done(id);
  }

  void finish_apply(bool is_ok) {
    if (!applying_) return;
    say(is_ok ? "applied" : "not applied");
    ending_ = std::exchange(applying_, std::nullopt);
    is_ok_ = is_ok;
    if (is_ok) {
      parameters_ = next_;
      values_[ending_->step] = parameters_;
      log_.steps.push_back(*ending_);
      ++reached_.applied;
    }
    carry_out(schedule_.on_applied(is_ok ? Result<void>() : Error(Errc::limit_exceeded, "no memory")));
    if (!ending_->contributions.empty()) wrong("a step that ended was not answered");
    ending_.reset();
    if (schedule_.version() != log_.last()) wrong("the version does not count the steps");
  }

  void time_out(std::uint32_t choice) {
    if (timers_.empty()) return;
    const std::uint64_t timer = timers_[choice % timers_.size()];
    std::erase(timers_, timer);
    say("timer " + std::to_string(timer));
    if (timer == timer_of_round_) is_late_ = true;
    carry_out(schedule_.on_straggler_timeout(timer));
  }

  void evaluate() {
    say("evaluate");
    ++evaluations_waiting_;
    carry_out(schedule_.on_evaluate());
  }

  void finish_evaluation(std::uint32_t choice) {
    if (evaluations_.empty()) return;
    const auto at = evaluations_.begin() + static_cast<std::ptrdiff_t>(choice % evaluations_.size());
    const ModelVersion version = *at;
    evaluations_.erase(at);
    if (snapshot(version) != values_.at(version)) wrong("an evaluation saw other parameters");
    carry_out(schedule_.on_evaluated(version));
  }

  // ---- actions

  void carry_out(const SharedActions& actions) {
    for (const SharedAction& action : actions) {
      std::visit([this](const auto& one) { on(one); }, action);
    }
    std::size_t open = evaluations_.size();
    for (const auto& [id, context] : contexts_)
      open += context.read && (!context.is_over || context.running > 0) ? 1 : 0;
    if (snapshots_.size() > open + 1) wrong("more snapshots than open contexts and one");
  }

  void on(const Pin& pin) {
    if (applying_) wrong("a snapshot is taken while a step is applied");
    if (pin.version != log_.last()) wrong("a snapshot of another version than the present one");
    auto& snapshot = snapshots_[pin.version];
    snapshot.first = parameters_;
    snapshot.second += pin.readers;
  }
  void on(const Unpin& unpin) {
    const auto known = snapshots_.find(unpin.version);
    if (known == snapshots_.end()) return wrong("a reader too many is taken away");
    if (--known->second.second == 0) snapshots_.erase(known);
  }
  void on(const Run& run) {
    say("  run " + to_string(run.context) + " at " + std::to_string(run.version.value));
    const auto known = contexts_.find(run.context);
    if (known == contexts_.end() || known->second.waiting < run.calls || run.calls == 0)
      return wrong("runs a call too many");
    Context& context = known->second;
    if (context.ended) wrong("runs a call of a context that has ended");
    if (context.read && *context.read != run.version) wrong("a context reads two versions");
    if (!context.read) open(context, run.version);
    context.waiting -= run.calls;
    context.running += run.calls;
    if (now(context) != context.seen) wrong("two calls of a context see other parameters");
  }
  void open(Context& context, ModelVersion version) {
    if (applying_) wrong("a context begins to read while a step is applied");
    if (version != log_.last()) wrong("a context reads another version than the present one");
    if (options_.mode == ConsistencyMode::locked) {
      for (const auto& [id, other] : contexts_) {
        if (other.has_lease()) wrong("two contexts have the lease");
      }
      if (arrived_.empty() || context.id != arrived_.front()) wrong("the lease does not go to the first that waits");
    }
    std::erase(arrived_, context.id);
    context.read = version;
    context.seen = now(context);
  }
  void on(const RunEvaluations& run) {
    if (run.count != evaluations_waiting_) wrong("not all evaluations run that wait");
    evaluations_waiting_ = 0;
    evaluations_.insert(evaluations_.end(), run.count, run.version);
  }
  void on(const RefuseCalls& refusal) {
    const auto known = contexts_.find(refusal.context);
    if (known == contexts_.end() || known->second.waiting < refusal.calls) return wrong("refuses a call too many");
    known->second.waiting -= refusal.calls;
    if (refusal.why.code() == Errc::lease_conflict) {
      if (!std::exchange(must_die_, false)) wrong("an old context is refused the lease");
      ++reached_.conflicts;
      return forget(refusal.context);
    }
    if (!known->second.ended) wrong("refuses a call: " + refusal.why.message());
    std::erase(arrived_, refusal.context);
  }
  void on(const RefuseStep& refusal) {
    say("  refuse the step of " + to_string(refusal.context) + ": " + refusal.why.message());
    Context* const context = conclude(refusal.context);
    if (!context) return;
    const std::uint64_t behind = log_.last().value - context->read->value;
    switch (refusal.why.code()) {
      case Errc::stale_gradient:
        ++reached_.stale;
        if (!options_.max_staleness || behind <= *options_.max_staleness) wrong("a fresh gradient is refused");
        break;
      case Errc::round_closed:
        ++reached_.closed;
        if (options_.mode != ConsistencyMode::sync || (behind == 0 && !applying_)) wrong("the round is still open");
        break;
      default:
        if (!ending_ || is_ok_) wrong("refuses a step: " + refusal.why.message());
        take_from_ending(refusal.context);
    }
    forget_if_done(refusal.context);
  }
  void on(const AnswerStep& answer) {
    if (!ending_ || !is_ok_ || answer.step != ending_->step) return wrong("answers a step that did not end");
    take_from_ending(answer.context);
    if (conclude(answer.context)) forget_if_done(answer.context);
  }
  void on(const StartTimer& start) {
    if (!options_.quorum || deliveries_.size() < *options_.quorum) wrong("a timer without a quorum");
    timers_.push_back(start.timer);
    timer_of_round_ = start.timer;
  }
  void on(const Apply& apply) {
    const StepRecord& step = apply.step;
    say("  apply step " + std::to_string(step.step.value) + " of " + std::to_string(step.contributions.size()));
    if (applying_) wrong("two steps are applied at once");
    if (options_.mode == ConsistencyMode::sync) {
      check_round(step);
    } else if (step.contributions.size() != 1 || deliveries_.empty() ||
               step.contributions[0].context != deliveries_.front()) {
      wrong("not the gradient that came first is applied");
    }
    check_contributions(step);
    applying_ = step;
  }
  void check_round(const StepRecord& step) {
    if (step.contributions.size() != deliveries_.size()) wrong("a gradient of the round is left out");
    bool all = true;
    for (std::uint32_t trainer = 0; trainer < live_.size(); ++trainer) {
      const bool is_there = std::any_of(step.contributions.begin(), step.contributions.end(),
                                        [&](const Contribution& c) { return c.trainer.value == trainer; });
      all = all && (is_there || !live_[trainer]);
    }
    const bool by_quorum = is_late_ && options_.quorum && step.contributions.size() >= *options_.quorum;
    if (!all && !by_quorum) wrong("the round is closed too early");
    if (!all) ++reached_.late;
    is_late_ = false;
    timer_of_round_ = 0;
  }
  /// Computes what the step makes of the parameters, by the reference's own order and versions.
  void check_contributions(const StepRecord& step) {
    std::vector<std::uint64_t> gradients;
    for (const Contribution& c : step.contributions) {
      const auto known = contexts_.find(c.context);
      if (known == contexts_.end() || !known->second.delivered) return wrong("applies a gradient that is not there");
      const Context& context = known->second;
      if (c.trainer != context.trainer || c.batch != context.batch || c.read != *context.read) {
        wrong("the record of a gradient is wrong");
      }
      if (options_.max_staleness && step.step.value - 1 - c.read.value > *options_.max_staleness) {
        wrong("a stale gradient is applied");
      }
      if (options_.mode != ConsistencyMode::versioned && c.read.value + 1 != step.step.value) {
        wrong("a gradient of another version is applied");
      }
      gradients.push_back(context.gradient);
      std::erase(deliveries_, c.context);
    }
    if (!gradients.empty()) next_ = stepped(parameters_, gradients);
  }

  // ---- the reference's own state

  /// Returns the parameters that a call or a backward pass of the context would read at this moment.
  std::uint64_t now(const Context& context) {
    return options_.mode == ConsistencyMode::locked ? parameters_ : snapshot(*context.read);
  }
  std::uint64_t snapshot(ModelVersion version) {
    const auto known = snapshots_.find(version);
    if (known != snapshots_.end()) return known->second.first;
    wrong("the snapshot of version " + std::to_string(version.value) + " is released, and still read");
    return 0;
  }
  /// Notes that the step of a context was answered.
  Context* conclude(const ContextId& id) {
    const auto known = contexts_.find(id);
    if (known == contexts_.end() || !known->second.delivered) {
      wrong("answers a step twice");
      return nullptr;
    }
    known->second.delivered = false;
    known->second.is_over = true;
    std::erase(deliveries_, id);
    return &known->second;
  }
  void take_from_ending(const ContextId& id) {
    if (ending_) std::erase_if(ending_->contributions, [&](const Contribution& c) { return c.context == id; });
  }
  void forget(ContextId id) {
    std::erase(arrived_, id);
    contexts_.erase(id);
  }
  void forget_if_done(const ContextId& id) {
    const auto known = contexts_.find(id);
    if (known == contexts_.end()) return;
    const Context& context = known->second;
    if (context.ended && context.waiting == 0 && context.running == 0 && !context.delivered) forget(id);
  }

  // ---- the end

  /// Ends what is under way; trainers that have nothing to do any more leave.
  void drain() {
    for (int rounds = 0; rounds < 10'000 && why_.empty(); ++rounds) {
      if (applying_) {
        finish_apply(true);
      } else if (!evaluations_.empty()) {
        finish_evaluation(0);
      } else if (!drain_one()) {
        const std::optional<std::uint32_t> trainer = next_to_leave();
        if (!trainer) return;
        lose(*trainer);
      }
    }
  }
  bool drain_one() {
    for (auto& [id, context] : contexts_) {
      if (context.running > 0) return finish_call(context), true;
      if (context.may_step()) return deliver(context), true;
      if (context.is_over && !context.ended) return end(context), true;
    }
    return false;
  }
  std::optional<std::uint32_t> next_to_leave() const {
    for (std::uint32_t trainer = 0; trainer < live_.size(); ++trainer) {
      const bool is_idle = std::none_of(contexts_.begin(), contexts_.end(),
                                        [&](const auto& known) { return known.second.trainer.value == trainer; });
      if (live_[trainer] && is_idle) return trainer;
    }
    return std::nullopt;
  }
  void check_end() {
    for (const auto& [id, context] : contexts_) {
      if (context.waiting > 0) return wrong("a call of " + to_string(id) + " waits for ever");
      if (context.delivered) return wrong("the step of " + to_string(id) + " is never answered");
    }
    if (evaluations_waiting_ > 0) return wrong("an evaluation waits for ever");
    if (!snapshots_.empty()) return wrong("a snapshot is kept without a reader");
    if (contexts_.empty() && schedule_.contexts() > 0) return wrong("a context is kept that has ended");
    check_replay();
  }
  /// What a replay of the log's text gives equals the parameters.
  void check_replay() {
    const Result<StepLog> log = parse_step_log(format_step_log(log_), "log");
    if (!log) return wrong(log.error().message());
    std::map<ModelVersion, std::uint64_t> values{{log->first, values_.at(log->first)}};
    for (const StepRecord& step : log->steps) {
      std::vector<std::uint64_t> gradients;
      for (const Contribution& c : step.contributions)
        gradients.push_back(gradient_of(values.at(c.read), c.trainer, c.batch));
      values[step.step] = stepped(values.at({step.step.value - 1}), gradients);
    }
    if (values.at(log->last()) != parameters_) wrong("a replay of the log gives other parameters");
  }

  void say(std::string text) {
    if (trace_) trace_->push_back(std::move(text));
  }
  void wrong(std::string text) {
    say("WRONG: " + text);
    if (why_.empty()) why_ = std::move(text);
  }

  ConsistencyOptions options_;
  SharedSchedule schedule_;
  std::vector<bool> live_;
  std::vector<std::uint64_t> made_;  // contexts, of each trainer
  std::vector<std::string>* trace_;
  std::string why_;
  Reached reached_;

  std::uint64_t parameters_ = 1;
  std::uint64_t next_ = 0;
  std::map<ModelVersion, std::uint64_t> values_;
  std::map<ModelVersion, std::pair<std::uint64_t, std::uint32_t>> snapshots_;  // value and readers
  StepLog log_;

  std::map<ContextId, Context> contexts_;
  std::deque<ContextId> arrived_;     // contexts that wait for their first read, by arrival
  std::deque<ContextId> deliveries_;  // contexts whose gradients are neither applied nor refused, by arrival
  std::optional<StepRecord> applying_;
  std::optional<StepRecord> ending_;  // during on_applied: the step whose contexts are not all answered yet
  bool is_ok_ = false;
  bool must_die_ = false;  // whether the present call is of a context that is too young to wait
  std::vector<std::uint64_t> timers_;
  std::uint64_t timer_of_round_ = 0;
  bool is_late_ = false;
  std::vector<ModelVersion> evaluations_;  // that run
  std::uint32_t evaluations_waiting_ = 0;
};

}  // namespace

History make_history(std::uint64_t seed, std::uint64_t index) {
  std::mt19937_64 random(mix64(seed + mix64(index)));
  History history;
  history.trainers = 1 + test::below(random, 4);
  ConsistencyOptions& options = history.options;
  switch (index % 6) {
    case 0:
      options.mode = ConsistencyMode::locked;
      break;
    case 1:
      options.mode = ConsistencyMode::locked;
      options.lease = LeaseOrder::oldest_waits;
      break;
    case 2:
      options.mode = ConsistencyMode::versioned;
      break;
    case 3:
      options.mode = ConsistencyMode::versioned;
      options.max_staleness = test::below(random, 3);
      break;
    case 4:
      options.mode = ConsistencyMode::sync;
      break;
    default:
      options.mode = ConsistencyMode::sync;
      options.quorum = 1 + test::below(random, history.trainers);
      options.straggler_timeout = std::chrono::seconds(1);
  }
  // Losses and failures are rare, or a history would soon have no trainer left.
  const std::uint32_t weights[kActs] = {8, 2, 10, 10, 3, 1, 8, 1, 3, 2, 3};
  std::uint32_t total = 0;
  for (const std::uint32_t weight : weights) total += weight;
  const std::uint32_t steps = 20 + test::below(random, 80);
  for (std::uint32_t i = 0; i < steps; ++i) {
    std::uint32_t left = test::below(random, total);
    std::uint32_t act = 0;
    while (left >= weights[act]) left -= weights[act++];
    history.steps.push_back({static_cast<Act>(act), test::below(random, 1000)});
  }
  return history;
}

std::string run_history(const History& history, std::vector<std::string>* trace) {
  return Reference(history, trace).run(history);
}

Reached reached_by(const History& history) {
  Reference reference(history, nullptr);
  static_cast<void>(reference.run(history));
  return reference.reached();
}

}  // namespace caftan::nn::model
