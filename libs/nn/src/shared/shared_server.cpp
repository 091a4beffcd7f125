#include "caftan/nn/internal/shared_server.hpp"

#include <algorithm>
#include <utility>

namespace caftan::nn {
namespace {

constexpr std::size_t kMostNamed = 8;  // trainers in a text

std::string text_of(const ContextId& context) { return "context " + to_string(context); }

Error has_stepped(const ContextId& context) {
  return {Errc::bad_arguments,
          text_of(context) + " has made its step of this module: begin a new context for the next one"};
}

Error still_waits(const ContextId& context) {
  return {Errc::bad_arguments, text_of(context) + " waits to read: wait for the result of its call before the step"};
}

}  // namespace

SharedServer::SharedServer(const SharedOptions& options, SharedSchedule schedule, std::shared_ptr<SharedCopy> module,
                           std::shared_ptr<ReadersCount> readers, SharedModuleJobs& jobs)
    : mode_(options.consistency.mode),
      schedule_(std::move(schedule)),
      module_(std::move(module)),
      readers_(std::move(readers)),
      jobs_(jobs),
      seats_(options.trainers) {}

Result<SharedServer> SharedServer::make(const SharedOptions& options, std::shared_ptr<SharedCopy> module,
                                        std::shared_ptr<ReadersCount> readers, SharedModuleJobs& jobs) {
  Result<SharedSchedule> schedule = SharedSchedule::make(options.consistency, options.trainers);
  if (!schedule) return schedule.error();
  return SharedServer(options, *std::move(schedule), std::move(module), std::move(readers), jobs);
}

void SharedServer::handle(SharedEvent& event) {
  std::visit([this](auto& one) { on(one); }, event);
}

void SharedServer::perform(SharedActions actions) {
  for (const SharedAction& action : actions) {
    std::visit([this](const auto& one) { perform(one); }, action);
  }
}

// ---- trainers

void SharedServer::on(shared_event::Join& event) {
  const std::string name = "trainer " + std::to_string(event.trainer.value);
  if (event.trainer.value >= seats_.size()) {
    event.reply.set(Error(Errc::bad_arguments, name + " of a module with " + std::to_string(seats_.size()) +
                                                   " trainers: they are numbered from 0"));
    return;
  }
  std::optional<Seat>& seat = seats_[event.trainer.value];
  if (seat) {
    event.reply.set(Error(Errc::bad_arguments,
                          name + (seat->is_gone ? " has left or is lost, at '" : " is at '") + seat->worker +
                              "': each trainer joins once, and one that has left or is lost cannot come back"));
    return;
  }
  seat = Seat{std::move(event.worker), false};
  event.reply.set({});
}

void SharedServer::on(shared_event::Gone& event) {
  std::optional<Seat>& seat = seats_[event.trainer.value];
  if (!seat || seat->is_gone) return;
  seat->is_gone = true;
  perform(schedule_.on_gone(event.trainer));
  std::vector<ContextId> its_contexts;
  for (const auto& [context, entry] : contexts_) {
    if (entry.trainer == event.trainer) its_contexts.push_back(context);
  }
  for (const ContextId& context : its_contexts) end(context);
}

void SharedServer::on(shared_event::AskStatus& event) {
  SharedStatus status{schedule_.version(), staleness_, {}, {}, 0};
  for (std::uint32_t number = 0; number < seats_.size(); ++number) {
    if (seats_[number]) (seats_[number]->is_gone ? status.gone : status.joined).push_back({number});
  }
  status.open_contexts = static_cast<std::uint64_t>(
      std::count_if(contexts_.begin(), contexts_.end(), [](const auto& known) { return known.second.counted; }));
  event.reply.set(std::move(status));
}

// ---- reading

void SharedServer::on(shared_event::Open& event) {
  Entry& entry = contexts_.try_emplace(event.context, Entry{.trainer = event.trainer}).first->second;
  if (entry.phase == Phase::checking) {
    event.reply.set(has_stepped(event.context));
    return;
  }
  entry.waiting.push_back(std::move(event.reply));
  perform(schedule_.on_call(event.context, event.trainer));
}

void SharedServer::perform(const shared_action::Run& action) {
  Entry& entry = contexts_.at(action.context);
  entry.running += action.calls;
  switch (entry.phase) {
    case Phase::waiting:
      entry.version = action.version;
      admit(action.context, entry);
      break;
    case Phase::open:
      answer_readers(entry);
      break;
    case Phase::failed:
      fail_readers(entry, Error(entry.why_failed));
      report_returned(action.context, entry);
      break;
    case Phase::copying:
    case Phase::checking:
    case Phase::delivered:
    case Phase::closing:
      break;
  }
}

/// The context reads from now on.
void SharedServer::admit(const ContextId& context, Entry& entry) {
  entry.counted = true;
  readers_->fetch_add(1);
  if (mode_ != ConsistencyMode::locked) {
    entry.phase = Phase::copying;
    start_copy(context);
    return;
  }
  entry.phase = Phase::open;
  entry.copy = module_;
  entry.copy->door->open(context);
  answer_readers(entry);
}

void SharedServer::start_copy(const Reader& reader) {
  ++copying_;
  std::shared_ptr<SharedCopy> copy;
  if (!free_.empty()) {
    copy = std::move(free_.back());
    free_.pop_back();
  }
  jobs_.copy(reader, std::move(copy));
}

void SharedServer::on(shared_event::Copied& event) {
  --copying_;
  if (const auto* context = std::get_if<ContextId>(&event.reader)) {
    on_copied(*context, std::move(event.copy));
  } else {
    on_copied(std::get<EvaluationId>(event.reader), std::move(event.copy));
  }
  apply_next();
}

void SharedServer::on_copied(const ContextId& context, Result<std::shared_ptr<SharedCopy>> copy) {
  Entry& entry = contexts_.at(context);
  if (copy) entry.copy = *std::move(copy);
  if (entry.is_over) {
    fail_readers(entry, Error(Errc::context_released, text_of(context) + " has ended"));
  } else if (!entry.copy) {
    entry.phase = Phase::failed;
    entry.why_failed = copy.error();
    fail_readers(entry, copy.error());
  } else {
    entry.phase = Phase::open;
    entry.copy->door->open(context);
    return answer_readers(entry);
  }
  report_returned(context, entry);
  if (entry.is_over) forget(context);
}

void SharedServer::answer_readers(Entry& entry) {
  for (Promise<Reading>& one : std::exchange(entry.waiting, {})) {
    one.set(Reading{entry.copy->reference, entry.version, {}});
  }
}

void SharedServer::fail_readers(Entry& entry, const Error& why) {
  for (Promise<Reading>& one : std::exchange(entry.waiting, {})) one.set(why);
}

void SharedServer::perform(const shared_action::RefuseCalls& action) {
  const auto known = contexts_.find(action.context);
  std::vector<Promise<Reading>>& waiting = known->second.waiting;
  for (std::uint32_t call = 0; call < action.calls; ++call) {
    waiting.back().set(action.why);
    waiting.pop_back();
  }
  if (waiting.empty() && known->second.phase == Phase::waiting) contexts_.erase(known);
}

// ---- ends of readings

void SharedServer::on(shared_event::Over& event) {
  perform(schedule_.on_end(event.context));
  end(event.context);
}

void SharedServer::end(const ContextId& context) {
  const auto known = contexts_.find(context);
  if (known == contexts_.end()) return;
  Entry& entry = known->second;
  if (std::exchange(entry.is_over, true)) return;
  if (entry.phase == Phase::open) {
    entry.phase = Phase::closing;
    jobs_.close(context, *entry.copy);
  } else if (entry.phase == Phase::waiting || entry.phase == Phase::failed) {
    forget(context);
  } else if (const auto call = entry.call.lock(); call && call->is_caller_gone() && entry.step) {
    // CM-29: no reply reaches the caller. The gradient stays, and with it the entry.
    entry.step->set(Error(Errc::peer_down, "trainer " + std::to_string(entry.trainer.value) +
                                               " is lost while its step waits for the round; the gradient counts"));
  }
}

void SharedServer::on(shared_event::Emptied& event) {
  if (const auto* context = std::get_if<ContextId>(&event.reader)) {
    report_returned(*context, contexts_.at(*context));
    return forget(*context);
  }
  const auto known = evaluations_.find(std::get<EvaluationId>(event.reader));
  give_back(std::move(known->second.copy));
  const ModelVersion version = known->second.version;
  evaluations_.erase(known);
  perform(schedule_.on_evaluated(version));
}

void SharedServer::report_returned(const ContextId& context, Entry& entry) {
  for (std::uint32_t calls = std::exchange(entry.running, 0); calls > 0; --calls) perform(schedule_.on_return(context));
}

void SharedServer::give_back(std::shared_ptr<SharedCopy> copy) {
  if (free_.size() <= seats_.size()) free_.push_back(std::move(copy));
}

void SharedServer::forget(const ContextId& context) {
  const auto known = contexts_.find(context);
  Entry& entry = known->second;
  if (entry.copy && entry.copy != module_) give_back(std::move(entry.copy));
  if (entry.counted) readers_->fetch_sub(1);
  contexts_.erase(known);
}

// ---- steps

void SharedServer::on(shared_event::Step& event) {
  const auto refuse = [&event](Error why) { event.reply.set(std::move(why)); };
  Entry& entry = contexts_.try_emplace(event.context, Entry{.trainer = event.trainer}).first->second;
  if (entry.trainer != event.trainer) {
    return refuse({Errc::bad_arguments, text_of(event.context) + " belongs to trainer " +
                                            std::to_string(entry.trainer.value) + ", not to trainer " +
                                            std::to_string(event.trainer.value)});
  }
  switch (entry.phase) {
    case Phase::waiting:
      if (!entry.waiting.empty()) return refuse(still_waits(event.context));
      // The schedule knows why a context that has no reading cannot step.
      entry.step = std::move(event.reply);
      return perform(schedule_.on_step(event.context, event.batch));
    case Phase::copying:
      return refuse(still_waits(event.context));
    case Phase::failed:
      return refuse(entry.why_failed);
    case Phase::checking:
    case Phase::delivered:
      return refuse(has_stepped(event.context));
    case Phase::closing:
      return refuse({Errc::context_released, text_of(event.context) + " has ended"});
    case Phase::open:
      break;
  }
  if (const std::uint32_t inside = entry.copy->door->close_if_empty(); inside > 0) {
    return refuse({Errc::bad_arguments, std::to_string(inside) + " calls of " + text_of(event.context) +
                                            " still run: wait for their results before the step"});
  }
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : entry.copy->tensors.trained) gradients.push_back(event.book.of(parameter));
  if (std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& one) { return one.defined(); })) {
    entry.copy->door->open_again();
    return refuse(
        {Errc::bad_arguments, "no parameter of the shared module has a gradient in " + text_of(event.context) +
                                  ": call context.backward with a loss that uses the module before the step"});
  }
  entry.phase = Phase::checking;
  entry.batch = event.batch;
  entry.rates = event.rates;
  entry.call = event.call;
  entry.gradients = gradients;
  entry.step = std::move(event.reply);
  jobs_.check(event.context, std::move(gradients), event.rates);
}

void SharedServer::on(shared_event::Checked& event) {
  Entry& entry = contexts_.at(event.context);
  if (event.outcome && !entry.is_over) {
    entry.phase = Phase::delivered;
    report_returned(event.context, entry);
    return perform(schedule_.on_step(event.context, entry.batch));
  }
  entry.step->set(event.outcome ? Error(Errc::context_released, text_of(event.context) + " has ended")
                                : event.outcome.error());
  entry.step.reset();
  entry.gradients.clear();
  if (!entry.is_over) {
    entry.phase = Phase::open;
    entry.copy->door->open_again();
    return;
  }
  report_returned(event.context, entry);
  forget(event.context);
}

void SharedServer::perform(const shared_action::Apply& action) {
  next_ = action.step;
  apply_next();
}

void SharedServer::apply_next() {
  if (!next_ || copying_ > 0) return;
  StepRecord step = *std::exchange(next_, std::nullopt);
  std::vector<Delivered> delivered;
  for (const Contribution& c : step.contributions) {
    Entry& entry = contexts_.at(c.context);
    delivered.push_back({std::exchange(entry.gradients, {}), entry.copy});
    if (!step.rates) step.rates = entry.rates;  // CM-25: those of the lowest trainer that has brought some
  }
  contributions_ = static_cast<std::uint32_t>(delivered.size());
  jobs_.apply(step, std::move(delivered));
}

void SharedServer::on(shared_event::Applied& event) { perform(schedule_.on_applied(event.outcome)); }

void SharedServer::perform(const shared_action::AnswerStep& action) {
  Entry& entry = contexts_.at(action.context);
  const std::uint64_t staleness = action.step.value - 1 - entry.version.value;
  if (staleness >= staleness_.size()) staleness_.resize(staleness + 1);
  ++staleness_[staleness];
  entry.step->set(StepResult{action.step, staleness, contributions_});
  forget(action.context);
}

void SharedServer::perform(const shared_action::RefuseStep& action) {
  contexts_.at(action.context).step->set(action.why);
  forget(action.context);
}

void SharedServer::perform(const shared_action::StartTimer& action) { jobs_.start_timer(action.timer); }

void SharedServer::on(shared_event::TimePassed& event) { perform(schedule_.on_straggler_timeout(event.timer)); }

// ---- steps whose callers' time is nearly over (CM-28)

void SharedServer::on(shared_event::Waits& event) {
  const auto known = contexts_.find(event.context);
  if (known == contexts_.end() || !known->second.step) return;  // the step is answered already
  known->second.answer_by = event.answer_by;
  wake_for(event.answer_by);
}

void SharedServer::wake_for(base::TimePoint at) {
  if (at >= wake_at_) return;
  wake_at_ = at;
  jobs_.wake_at(at);
}

void SharedServer::on(shared_event::Woken& event) {
  if (event.at >= wake_at_) wake_at_ = base::kNever;
  base::TimePoint next = base::kNever;
  for (auto& [context, entry] : contexts_) {
    if (entry.answer_by > event.at) {
      next = std::min(next, entry.answer_by);
    } else if (entry.step) {
      entry.answer_by = base::kNever;
      entry.step->set(still_open());
    }
  }
  wake_for(next);
}

Error SharedServer::still_open() const {
  const std::vector<TrainerNumber> awaited = schedule_.awaited();
  std::string text;
  for (std::size_t i = 0; i < std::min(awaited.size(), kMostNamed); ++i) {
    const std::optional<Seat>& seat = seats_[awaited[i].value];
    text += (i == 0 ? "" : ", ") + ("trainer " + std::to_string(awaited[i].value)) +
            (seat ? " at '" + seat->worker + "'" : ", which has not joined");
  }
  if (awaited.size() > kMostNamed) text += " and " + std::to_string(awaited.size() - kMostNamed) + " more";
  if (text.empty()) return {Errc::timeout, "the step of this gradient is being made; the gradient counts"};
  return {Errc::timeout, "the round of version " + std::to_string(schedule_.version().value) + " waits for " + text +
                             "; it waits for all " + std::to_string(seats_.size()) +
                             " trainers of SharedOptions::trainers but those that have left. The gradient counts"};
}

// ---- evaluations

void SharedServer::on(shared_event::Evaluate& event) {
  waiting_evaluations_.push_back(std::move(event.reply));
  perform(schedule_.on_evaluate());
}

void SharedServer::perform(const shared_action::RunEvaluations& action) {
  for (std::uint32_t i = 0; i < action.count; ++i) {
    last_evaluation_ = EvaluationId{last_evaluation_.value + 1};
    Evaluation& evaluation = evaluations_[last_evaluation_];
    evaluation.version = action.version;
    evaluation.reply = std::move(waiting_evaluations_.front());
    waiting_evaluations_.pop_front();
    start_copy(last_evaluation_);
  }
}

void SharedServer::on_copied(const EvaluationId& id, Result<std::shared_ptr<SharedCopy>> copy) {
  Evaluation& evaluation = evaluations_.at(id);
  Promise<OpenedEvaluation> reply = *std::exchange(evaluation.reply, std::nullopt);
  if (copy) {
    evaluation.copy = *std::move(copy);
    evaluation.copy->door->open(std::nullopt);
    const bool wanted = reply.set(OpenedEvaluation{evaluation.copy->reference, evaluation.version, id});
    if (!wanted) jobs_.close(id, *evaluation.copy);
    return;
  }
  const ModelVersion version = evaluation.version;
  evaluations_.erase(id);
  reply.set(copy.error());
  perform(schedule_.on_evaluated(version));
}

void SharedServer::on(shared_event::Evaluated& event) {
  const auto known = evaluations_.find(event.evaluation);
  if (known != evaluations_.end() && known->second.copy) jobs_.close(event.evaluation, *known->second.copy);
}

}  // namespace caftan::nn
