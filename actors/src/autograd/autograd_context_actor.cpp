#include "autograd/autograd_context_actor.hpp"

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include "caftan/autograd/internal/engine.hpp"
#include "caftan/remote/internal/actor_exchange.hpp"
#include "caftan/wire/internal/shortened.hpp"

namespace caftan::actors {

using autograd::PassActions;
using autograd::PassNumber;
using remote::Address;

namespace {

/// Returns the message with a shortened error; nothing if it carries none.
std::optional<autograd::PassMessage> with_brief_error(const autograd::PassMessage& message) {
  return std::visit(
      [](const auto& of) -> std::optional<autograd::PassMessage> {
        if constexpr (requires { of.error; }) {
          auto brief = of;
          brief.error = wire::shortened(of.error, wire::kBriefText);
          return brief;
        } else if constexpr (requires { of.outcome; }) {
          if (of.outcome) return std::nullopt;
          auto brief = of;
          brief.outcome = wire::shortened(of.outcome.error(), wire::kBriefText);
          return brief;
        } else {
          return std::nullopt;
        }
      },
      message);
}

/// Returns the pass of a Mark or Report, whose size grows with the recorded messages that it lists (DA-24); nothing for
/// other messages.
std::optional<PassNumber> pass_that_lists(const autograd::PassMessage& message) {
  if (const auto* mark = std::get_if<autograd::Mark>(&message)) return mark->header.pass.number;
  if (const auto* report = std::get_if<autograd::Report>(&message)) return report->pass.number;
  return std::nullopt;
}

}  // namespace

caf::behavior autograd_context_actor(AutogradContextActor* self, ContextPorts* ports,
                                     std::shared_ptr<autograd::ContextRecord> record) {
  self->set_wire_name(Address::of(record->id()));
  self->set_down_handler([self](const caf::down_msg& down) { self->state.on_down(down); });
  self->state.start(*ports, std::move(record));
  return {[self](const PassEnvelope& envelope) { self->state.on_envelope(envelope); },
          [self](ContextEvent& event) { self->state.on_event(event); }};
}

AutogradContextState::~AutogradContextState() {
  if (!record_) return;
  resolve(Error(Errc::context_released, ports_->name(), "the autograd context has ended"));
  // The job holds a reference to this actor: an actor that ends during a pass must drop the job.
  if (job_) {
    job_->stop();
    ports_->executor().post([job = std::exchange(job_, nullptr)] {});
  }
  record_->end();
  ports_->context_ended(record_->id());
}

void AutogradContextState::start(ContextPorts& ports, std::shared_ptr<autograd::ContextRecord> record) {
  ports_ = &ports;
  record_ = std::move(record);
  passes_.emplace(record_->id(), ports.self(), *record_);
  if (!passes_->is_home()) perform(passes_->join());
}

// ---- what arrives

void AutogradContextState::on_envelope(const PassEnvelope& envelope) {
  const auto session = remote::ActorExchange::session_of(self_->current_sender());
  if (!session) return;  // the session has ended: the loss of the peer is reported as an event of its own
  const WorkerLife from = session->peer().life;
  if (const auto* release = std::get_if<autograd::Release>(&envelope.message)) ports_->learn_released(from, *release);
  if (passes_->is_released()) {
    if (auto answer = ports_->refuse(from, envelope.message)) send_to(answer->to, std::move(answer->message));
    return;
  }
  watch(from);
  perform(passes_->receive(from, envelope.message));
}

void AutogradContextState::on_event(ContextEvent& event) {
  std::visit([this](auto& e) { on(e); }, event.event);
}

void AutogradContextState::on_down(const caf::down_msg& down) {
  for (const auto& [peer, proxy] : watched_) {
    if (proxy->id() != down.source.id()) continue;
    const WorkerLife lost = peer;
    watched_.erase(lost);
    return peer_down(lost);
  }
}

void AutogradContextState::on(context_event::Start& event) {
  auto actions = passes_->open({event.start->mode, event.start->keep, event.start->held});
  if (!actions) return event.promise->set(actions.error().at(ports_->name()));
  start_ = std::move(event.start);
  promise_ = std::move(event.promise);
  ++starts_;
  if (start_->deadline != base::kNever) {
    ports_->executor().post_at(start_->deadline, [self = caf::weak_actor_ptr(self_->ctrl()), start = starts_] {
      if (const auto strong = caf::actor_cast<caf::actor>(self)) {
        caf::anon_send(strong, ContextEvent{context_event::Deadline{start}});
      }
    });
  }
  perform(*std::move(actions));
}

void AutogradContextState::on(context_event::Deadline& event) {
  if (!promise_ || event.start != starts_) return;
  perform(passes_->abort(Error(Errc::timeout, ports_->name(), "the time-out of backward passed")));
}

void AutogradContextState::on(context_event::Cancelled& event) {
  if (!promise_ || !promise_->is_of(event.pass)) return;
  perform(passes_->abort(Error(Errc::cancelled, ports_->name(), "the future of backward was cancelled")));
}

void AutogradContextState::on(context_event::GradientArrived& event) {
  if (passes_->is_released()) {
    if (auto answer = ports_->refuse(event.from, event.grad)) send_to(answer->to, std::move(answer->message));
    return;
  }
  perform(passes_->receive(event.from, std::move(event.grad), event.bytes));
}

void AutogradContextState::on(context_event::Walked& event) {
  if (!event.found.empty()) perform(passes_->found(event.pass, event.found));
  if (!event.done) return;
  perform(event.outcome ? passes_->walked(event.pass) : passes_->graph_failed(event.pass, event.outcome.error()));
}

void AutogradContextState::on(context_event::Ran& event) {
  for (auto& [message, encoded] : event.produced) {
    leaving_[message] = std::move(encoded);
    perform(passes_->produced(event.pass, message));
  }
  if (!event.done) return;
  perform(event.outcome ? passes_->ran(event.pass, event.result)
                        : passes_->graph_failed(event.pass, event.outcome.error().at(ports_->name())));
}

void AutogradContextState::on(context_event::PeerDown& event) { peer_down(event.peer); }

void AutogradContextState::on(context_event::NotSent& event) { perform(passes_->not_sent(event.pass, event.error)); }

void AutogradContextState::on(context_event::Learned&) { perform(passes_->learn(record_->decided())); }

void AutogradContextState::on(context_event::Release&) {
  if (passes_->is_home()) perform(passes_->release());
}

void AutogradContextState::on(context_event::Finish& event) {
  resolve(event.reason);
  self_->quit();
}

// ---- what is done

void AutogradContextState::perform(PassActions actions) {
  for (autograd::PassAction& action : actions) std::visit([this](auto& a) { perform(a); }, action);
  // Every frame of a call carries the decided passes that the record knows.
  if (passes_->decided().up_to() != published_) {
    published_ = passes_->decided().up_to();
    (void)record_->learn(passes_->decided());
  }
  while (!unreachable_.empty()) {
    const WorkerLife lost = unreachable_.back();
    unreachable_.pop_back();
    peer_down(lost);
  }
  while (!unsent_.empty()) {
    const Unsent unsent = std::move(unsent_.back());
    unsent_.pop_back();
    perform(passes_->not_sent(unsent.pass, unsent.error));
  }
  if (in_walked_) return;
  in_walked_ = true;
  while (walked_) {
    context_event::Walked walked = *std::exchange(walked_, std::nullopt);
    on(walked);
  }
  in_walked_ = false;
}

void AutogradContextState::peer_down(const WorkerLife& lost) {
  perform(passes_->peer_down(lost, ports_->peer_name(lost.id)));
}

bool AutogradContextState::watch(const WorkerLife& peer) {
  if (watched_.contains(peer)) return true;
  auto there = ports_->proxy(peer, Address::of(record_->id()));
  if (!there) return false;
  self_->monitor(caf::actor_cast<caf::actor>(there));
  watched_.emplace(peer, std::move(there));
  return true;
}

bool AutogradContextState::send_to(const WorkerLife& to, autograd::PassMessage message) {
  const auto known = watched_.find(to);
  const auto there = known != watched_.end() ? known->second : ports_->proxy(to, Address::of(record_->id()));
  if (!there) return false;
  const auto send = [&](autograd::PassMessage what) {
    return remote::ActorExchange::send(there, caf::actor_cast<caf::strong_actor_ptr>(self_),
                                       caf::make_message(PassEnvelope{std::move(what)}));
  };
  const auto pass = pass_that_lists(message);
  auto brief = with_brief_error(message);
  auto sent = send(std::move(message));
  if (!sent && sent.error().code() == Errc::limit_exceeded && brief) sent = send(*std::move(brief));
  // The loss of the peer is reported as an event of its own.
  if (sent || sent.error().code() == Errc::peer_down) return true;
  ports_->log("a message of context " + to_string(record_->id()) + " was not sent: " + sent.error().message());
  if (!pass || sent.error().code() != Errc::limit_exceeded) return false;
  unsent_.push_back({*pass, Error(Errc::limit_exceeded, ports_->name(),
                                  "a message that lists what the pass reaches, and the objects that its callers hold, "
                                  "is too large: " +
                                      sent.error().text())});
  return true;
}

void AutogradContextState::perform(autograd::Send& action) {
  auto* const grad = std::get_if<autograd::Grad>(&action.message);
  bool sent = false;
  if (!grad) {
    // Watched after the message was sent: if the context is over there, its reply comes before the watch reports no
    // actor.
    sent = send_to(action.to, std::move(action.message)) && watch(action.to);
  } else if (action.to == ports_->self() || watch(action.to)) {
    const auto leaving = leaving_.find(grad->message);
    caf::anon_send(ports_->recv_function(record_->id(), grad->message),
                   ShipGradient{action.to, std::move(*grad), std::move(leaving->second)});
    leaving_.erase(leaving);
    sent = true;
  }
  if (!sent) unreachable_.push_back(action.to);
}

void AutogradContextState::perform(autograd::WatchWorker& action) {
  if (action.worker != ports_->self() && !watch(action.worker)) unreachable_.push_back(action.worker);
}

void AutogradContextState::perform(autograd::BeginPass& action) {
  std::shared_ptr<autograd::Engine> engine;
  std::shared_ptr<rpc::Strand> strand;
  begin_error_.reset();
  if (start_ && start_->engine) {
    engine = std::move(start_->engine);
    strand = std::move(start_->strand);
  } else {
    auto begun = autograd::Engine::begin({record_->id(), action.keep});
    if (begun) {
      engine = *std::move(begun);
    } else {
      begin_error_ = begun.error();
      return;
    }
  }
  job_ = std::make_shared<GraphJob>(*ports_, caf::actor_cast<caf::actor>(self_), record_, action.pass,
                                    std::move(engine), std::move(strand), std::move(action.held));
}

GraphJob::Functions AutogradContextState::functions(const std::vector<AutogradMessageId>& messages) const {
  GraphJob::Functions functions;
  functions.reserve(messages.size());
  for (const AutogradMessageId& message : messages) {
    // If a message is not in the record any more, the context is ending.
    if (auto function = record_->send_function(message)) functions.push_back(std::move(function));
  }
  return functions;
}

void AutogradContextState::perform(autograd::WalkGraph& action) {
  // A walk that the report of another walk begins, as with a call of this worker to itself, runs as a job: a chain of
  // such walks may visit a large graph.
  walked_ = job_ ? job_->walk(functions(action.messages), !in_walked_)
                 : context_event::Walked{action.pass, {}, true, *begin_error_};
}

void AutogradContextState::perform(autograd::RunGraph& action) {
  Result<void> valid;
  if (begin_error_) valid = *begin_error_;
  std::vector<GraphJob::Feed> feeds;
  for (const AutogradMessageId& message : action.feed) {
    auto gradients = record_->take_delivered(action.pass, message);
    if (gradients) {
      feeds.push_back({message, *std::move(gradients)});
    } else if (valid) {
      valid = gradients.error();
    }
  }
  if (valid) {
    return job_->run(action.sources_counted ? GraphJob::Functions() : functions(action.sources), std::move(feeds));
  }
  context_event::Ran ran;
  ran.pass = action.pass;
  ran.done = true;
  ran.outcome = std::move(valid);
  self_->send(self_, ContextEvent{std::move(ran)});
}

void AutogradContextState::perform(autograd::StopGraph&) {
  if (job_) job_->stop();
}

void AutogradContextState::forget_pass(PassNumber pass) {
  // The job is destroyed on a runner: its graph may have many nodes, whose destruction takes long.
  ports_->executor().post([job = std::move(job_), start = start_] {});
  job_ = nullptr;
  leaving_.clear();
  record_->forget_delivered(pass);
  ports_->drop_functions(record_->id());
}

void AutogradContextState::perform(autograd::MergeGradients& action) {
  if (const auto merged = record_->learn(passes_->decided()); !merged) {
    ports_->log("gradients of autograd context " + to_string(record_->id()) + " are lost: " + merged.error().message());
  }
  forget_pass(action.pass);
}

void AutogradContextState::perform(autograd::DropGradients& action) {
  record_->drop(action.pass);
  forget_pass(action.pass);
}

void AutogradContextState::perform(autograd::PassEnded& action) { resolve(std::move(action.outcome)); }

void AutogradContextState::resolve(Result<void> outcome) {
  start_ = nullptr;
  const auto promise = std::exchange(promise_, nullptr);
  if (!promise) return;
  promise->set(std::move(outcome));
}

void AutogradContextState::perform(autograd::ContextReleased& action) {
  const autograd::ReleasedRange released = ports_->context_over(record_->id());
  record_->end();
  for (const WorkerLife& peer : action.tell) send_to(peer, autograd::Release{record_->id(), released});
}

void AutogradContextState::perform(autograd::ContextEmpty&) { self_->quit(); }

}  // namespace caftan::actors
