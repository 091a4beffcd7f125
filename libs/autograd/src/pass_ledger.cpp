#include "caftan/autograd/internal/pass_ledger.hpp"

#include <utility>

#include "lost_worker.hpp"

namespace caftan::autograd {

PassActions PassLedger::start() const { return {Send{pass_.context.maker(), PassOpen{pass_.context}}}; }

PassActions PassLedger::granted(PassNumber pass) {
  if (phase_ != Phase::opening) return {};
  pass_.number = pass;
  phase_ = Phase::counting;
  if (failed_early_) return decide(*failed_early_);
  enter(AutogradMessageId{}, &Entry::spawned);
  participants_[self_];
  undone_ = 1;
  return {};
}

PassActions PassLedger::refused(const Error& error) {
  if (phase_ != Phase::opening) return {};
  return abandoned(failed_early_ ? *failed_early_ : error);
}

PassActions PassLedger::report(WorkerLife from, const Report& report) {
  if (phase_ == Phase::running) return out_of_line(from, "reports after the ledger has closed");
  if (phase_ != Phase::counting) {
    participants_.try_emplace(from);  // it gets the outcome
    return {};
  }
  PassActions actions;
  const auto take_in = [&](WorkerLife life) -> Participant& {
    const auto [at, is_new] = participants_.try_emplace(life);
    if (is_new) {
      ++undone_;
      // Watched also because the worker may be unreachable from here already, though not from the worker that marked
      // its message.
      actions.push_back(WatchWorker{life});
    }
    return at->second;
  };
  for (const AutogradMessageId message : report.done) {
    // Only the worker of S(m) can be done with m, and only the initiator with the roots.
    if ((message ? message.maker() : self_) != from) return out_of_line(from, "reports a message that is not its own");
    if (!enter(message, &Entry::done)) return out_of_line(from, "reports a message twice");
  }
  for (const AutogradMessageId message : report.spawned) {
    if (!message || !enter(message, &Entry::spawned)) return out_of_line(from, "sends for a message twice");
    take_in(message.maker());
  }
  Participant& sender = take_in(from);
  if (report.drained && !sender.done) {
    sender.done = true;
    --undone_;
  }
  sender.missing.insert(sender.missing.end(), report.missing.begin(), report.missing.end());
  if (open_ == 0) closed(actions);
  return actions;
}

PassActions PassLedger::done(WorkerLife from) {
  if (phase_ == Phase::counting) return out_of_line(from, "is done before the ledger has closed");
  if (phase_ != Phase::running) return {};
  const auto at = participants_.find(from);
  if (at == participants_.end() || at->second.done) return out_of_line(from, "is done with what it has no part in");
  at->second.done = true;
  return --undone_ == 0 ? decide({}) : PassActions{};
}

PassActions PassLedger::failed(WorkerLife from, const Error& error) {
  participants_.try_emplace(from);  // a worker may fail before another worker's report has named it as a participant
  return fail(error);
}

PassActions PassLedger::fail(const Error& error) {
  if (phase_ == Phase::opening && !failed_early_) failed_early_ = error;
  if (phase_ != Phase::counting && phase_ != Phase::running) return {};
  return decide(error);
}

PassActions PassLedger::peer_down(WorkerLife peer, const std::string& name) {
  if (participants_.count(peer) == 0) return {};
  return fail(lost_worker(peer, name, "which takes part in pass " + to_string(pass_)));
}

PassActions PassLedger::decided(const Decided& decided) {
  if (phase_ == Phase::opening || phase_ == Phase::ended) return {};
  phase_ = Phase::ended;
  PassActions actions = {PassEnded{pass_.number, decided.outcome}};
  for (const auto& [life, participant] : participants_) {
    if (life == self_ || life == pass_.context.maker()) continue;
    actions.push_back(Send{life, End{pass_, decided.outcome, decided.decided}});
  }
  return actions;
}

PassActions PassLedger::abandoned(const Error& error) {
  if (phase_ == Phase::ended) return {};
  phase_ = Phase::ended;
  return {PassEnded{pass_.number, error}};
}

// Returns false if the entry was made before.
bool PassLedger::enter(AutogradMessageId message, bool Entry::*side) {
  const auto [at, is_new] = entries_.try_emplace(message);
  Entry& entry = at->second;
  if (entry.*side) return false;
  entry.*side = true;
  if (is_new) {
    ++open_;
  } else {
    --open_;
  }
  return true;
}

PassActions PassLedger::decide(Result<void> outcome) {
  phase_ = Phase::deciding;
  return {Send{pass_.context.maker(), Decide{pass_, std::move(outcome)}}};
}

void PassLedger::closed(PassActions& actions) {
  phase_ = Phase::running;
  if (mode_ == Mode::smart) return;
  // FAST: nothing is in flight any more, so a worker that still waits would wait for ever.
  for (PassAction& action : undone_ == 0 ? decide({}) : decide(unused_branch())) actions.push_back(std::move(action));
}

PassActions PassLedger::out_of_line(WorkerLife from, const char* what) {
  return fail(Error(Errc::malformed_payload, name_of(from) + " " + what + " (pass " + to_string(pass_) + ")"));
}

Error PassLedger::unused_branch() const {
  for (const auto& [life, participant] : participants_) {
    if (participant.done) continue;
    for (const AutogradMessageId& message : participant.missing) {
      const auto at = entries_.find(message);
      if (at != entries_.end() && at->second.done) continue;  // it came after that report
      return Error(Errc::unused_branch, "message " + to_string(message) + ", sent by " + name_of(life) +
                                            ", gets no gradient from these roots: use Mode::smart, or use its result");
    }
  }
  return Error(Errc::unused_branch, "a recorded message gets no gradient from these roots: use Mode::smart");
}

}  // namespace caftan::autograd
