#include "caftan/autograd/internal/context_passes.hpp"

#include <cassert>
#include <set>
#include <string>
#include <utility>

#include "lost_worker.hpp"
#include "released_context.hpp"

namespace caftan::autograd {

ContextPasses::ContextPasses(ContextId context, WorkerLife self, const RecordedMessages& recorded, PassLimits limits)
    : context_(context), self_(self), recorded_(recorded), limits_(limits) {
  if (context.maker() == self) home_.emplace(context);
}

PassActions ContextPasses::join() {
  assert(!is_home());
  return {Send{context_.maker(), Join{context_}}};
}

Result<PassActions> ContextPasses::open(const OpenPass& options) {
  if (released_ || (home_ && home_->release_asked())) return released_context(context_);
  if (ledger_) {
    return Error(Errc::pass_busy, "a pass of context " + to_string(context_) +
                                      " is still open on this worker: wait for it, or use a context of its own");
  }
  ledger_.emplace(context_, self_, options.mode);
  keep_ = options.keep;
  held_ = options.held;
  if (home_) home_->own_pass_begins();
  PassActions out;
  by_ledger(ledger_->start(), out);
  return finished(std::move(out));
}

PassActions ContextPasses::abort(const Error& error) {
  PassActions out;
  if (ledger_) by_ledger(ledger_->fail(error), out);
  return finished(std::move(out));
}

PassActions ContextPasses::learn(const DecidedSet& decided) {
  PassActions out;
  take_over(decided, out);
  return finished(std::move(out));
}

PassActions ContextPasses::receive(WorkerLife from, const PassMessage& message, std::uint64_t bytes) {
  PassActions out;
  if (released_) return out;
  std::visit([&](const auto& m) { on(from, m, bytes, out); }, message);
  return finished(std::move(out));
}

PassActions ContextPasses::peer_down(WorkerLife peer, const std::string& name) {
  PassActions out;
  if (released_) return out;
  if (peer == context_.maker()) {
    end_context(lost_worker(peer, name, "the home of context " + to_string(context_)), out);
    return finished(std::move(out));
  }
  if (home_) by_home(home_->peer_down(peer, name), out);
  if (ledger_) by_ledger(ledger_->peer_down(peer, name), out);
  if (worker_) by_worker(worker_->peer_down(peer, name), out);
  return finished(std::move(out));
}

// Calls `act` with this worker's part of the pass, if it still has one: a message of another pass is late and ignored.
template <class Act>
PassActions ContextPasses::at_worker(PassNumber pass, Act act) {
  PassActions out;
  if (worker_ && worker_->number() == pass) by_worker(act(*worker_), out);
  return finished(std::move(out));
}

PassActions ContextPasses::found(PassNumber pass, const std::vector<FoundRecv>& nodes) {
  return at_worker(pass, [&](WorkerPass& worker) { return worker.found(nodes); });
}

PassActions ContextPasses::walked(PassNumber pass) {
  return at_worker(pass, [](WorkerPass& worker) { return worker.walked(); });
}

PassActions ContextPasses::produced(PassNumber pass, AutogradMessageId message) {
  return at_worker(pass, [&](WorkerPass& worker) { return worker.produced(message); });
}

PassActions ContextPasses::ran(PassNumber pass, const RunResult& result) {
  return at_worker(pass, [&](WorkerPass& worker) { return worker.ran(result); });
}

PassActions ContextPasses::graph_failed(PassNumber pass, const Error& error) {
  return at_worker(pass, [&](WorkerPass& worker) { return worker.graph_failed(error); });
}

PassActions ContextPasses::not_sent(PassNumber pass, const Error& error) {
  return at_worker(pass, [&](WorkerPass& worker) { return worker.fail(error); });
}

PassActions ContextPasses::release() {
  PassActions out;
  if (home_->release()) end_context(released_context(context_), out);
  return finished(std::move(out));
}

std::vector<WorkerLife> ContextPasses::workers() const {
  if (!home_) return {};
  return {home_->workers().begin(), home_->workers().end()};
}

void ContextPasses::on(WorkerLife from, const PassOpen&, std::uint64_t, PassActions& out) {
  if (home_) by_home(home_->open(from), out);
}

void ContextPasses::on(WorkerLife from, const Granted& message, std::uint64_t bytes, PassActions& out) {
  if (from != context_.maker() || !ledger_) return;
  take_over(message.decided, out);
  if (worker_) {  // this worker's part of an earlier pass has not stopped yet: the grant waits
    waiting_.push_back({from, message, bytes});
    return;
  }
  by_ledger(ledger_->granted(message.pass.number), out);
  if (ledger_->phase() != PassLedger::Phase::counting) return;
  PassHeader header{message.pass, message.decided, self_, ledger_->mode(), keep_, held_};
  worker_.emplace(self_, std::move(header), recorded_, limits_);
  by_worker(worker_->begin_at_roots(), out);
}

void ContextPasses::on(WorkerLife from, const Refused& message, std::uint64_t, PassActions& out) {
  if (from == context_.maker() && ledger_) by_ledger(ledger_->refused(message.error), out);
}

void ContextPasses::on(WorkerLife from, const Mark& message, std::uint64_t bytes, PassActions& out) {
  if (!takes_part(from, message.header, message, bytes, out)) return;
  for (const AutogradMessageId& marked : message.messages) {
    const auto at = freed_by_.find(marked);
    if (at == freed_by_.end()) continue;
    const std::string text = "graph freed by failed pass " + to_string(PassId{context_, at->second}) +
                             ": run the forward again, or backward with retain_graph";
    by_worker(worker_->fail(Error(Errc::graph_freed, text)), out);
    return;
  }
  by_worker(worker_->marked(from, message.messages), out);
}

void ContextPasses::on(WorkerLife from, const Grad& message, std::uint64_t bytes, PassActions& out) {
  if (!takes_part(from, message.header, message, bytes, out)) return;
  by_worker(worker_->gradient(from, message.message, bytes), out);
}

void ContextPasses::on(WorkerLife from, const Report& message, std::uint64_t, PassActions& out) {
  if (is_ledgers(message.pass)) {
    by_ledger(ledger_->report(from, message), out);
  } else {
    answer_end(from, message.pass, out);
  }
}

void ContextPasses::on(WorkerLife from, const Done& message, std::uint64_t, PassActions& out) {
  if (is_ledgers(message.pass)) {
    by_ledger(ledger_->done(from), out);
  } else {
    answer_end(from, message.pass, out);
  }
}

void ContextPasses::on(WorkerLife from, const Fail& message, std::uint64_t, PassActions& out) {
  if (is_ledgers(message.pass)) {
    by_ledger(ledger_->failed(from, message.error), out);
  } else if (home_) {
    by_home(home_->fail(from, message), out);
  } else if (worker_ && worker_->header().pass == message.pass && !worker_->is_concluded()) {
    // The Fail is from a peer that cannot reach the initiator or the home.
    by_worker(worker_->fail(message.error), out);
  } else {
    answer_end(from, message.pass, out);
  }
}

void ContextPasses::on(WorkerLife from, const Decide& message, std::uint64_t, PassActions& out) {
  if (home_) by_home(home_->decide(from, message), out);
}

void ContextPasses::on(WorkerLife from, const Decided& message, std::uint64_t, PassActions& out) {
  if (from != context_.maker()) return;
  if (!message.outcome) failures_.emplace(message.pass.number, message.outcome.error());
  take_over(message.decided, out);  // before the future resolves
  if (is_ledgers(message.pass)) by_ledger(ledger_->decided(message), out);
}

void ContextPasses::on(WorkerLife from, const Join&, std::uint64_t, PassActions& out) {
  if (home_) by_home(home_->joined(from), out);
}

void ContextPasses::on(WorkerLife from, const End& message, std::uint64_t, PassActions& out) {
  const bool is_initiators = worker_ && worker_->header().initiator == from;
  if (from != context_.maker() && !is_initiators) return;
  if (!message.outcome) failures_.emplace(message.pass.number, message.outcome.error());
  take_over(message.decided, out);
}

void ContextPasses::on(WorkerLife from, const Release&, std::uint64_t, PassActions& out) {
  if (from == context_.maker()) end_context(released_context(context_), out);
}

// Brings this worker into the pass of a mark or gradient. Returns false if there is nothing to do for it now.
bool ContextPasses::takes_part(WorkerLife from, const PassHeader& header, const PassMessage& message,
                               std::uint64_t bytes, PassActions& out) {
  const PassNumber pass = header.pass.number;
  if (decided_.contains(pass)) return false;  // late (DA-9)
  const auto refuse = [&](Errc code, const char* text) {
    if (from != self_) out.push_back(Send{from, Fail{header.pass, Error(code, text)}});
    return false;
  };
  if (header.held.size() > kMostHeld)
    return refuse(Errc::malformed_payload, "a pass whose caller holds too many objects");
  // One pass is open at a time: so a worker that was granted pass n knows how all earlier ones ended.
  if (header.decided.up_to().value + 1 != pass.value) return refuse(Errc::malformed_payload, "a pass out of order");
  take_over(header.decided, out);
  if (worker_ && worker_->number() == pass) return true;
  if (worker_) {
    waiting_.push_back({from, message, bytes});
    return false;
  }
  if (header.initiator == self_) return false;  // no message of a peer begins a pass that this worker initiates
  if (header.mode == Mode::smart && std::holds_alternative<Grad>(message)) {
    return refuse(Errc::invalid_gradient, "a gradient came to a worker that has no marks");
  }
  worker_.emplace(self_, header, recorded_, limits_);
  by_worker(worker_->begin(), out);
  return true;
}

bool ContextPasses::is_ledgers(const PassId& pass) const {
  return ledger_ && ledger_->phase() != PassLedger::Phase::opening && ledger_->pass() == pass;
}

// Answers with the outcome: a worker that sends a message of a decided pass does not know the outcome yet.
void ContextPasses::answer_end(WorkerLife from, const PassId& pass, PassActions& out) const {
  if (from == self_ || !decided_.contains(pass.number)) return;
  End end{pass, {}, decided_};
  if (!decided_.is_ok(pass.number)) {
    const auto at = failures_.find(pass.number);
    end.outcome =
        at != failures_.end() ? at->second : Error(Errc::backward_failed, "pass " + to_string(pass) + " failed");
  }
  out.push_back(Send{from, std::move(end)});
}

void ContextPasses::take_over(const DecidedSet& decided, PassActions& out) {
  if (!decided_.learn(decided) || !worker_ || !decided_.contains(worker_->number())) return;
  const bool ok = decided_.is_ok(worker_->number());
  if (!ok && worker_->has_run() && !worker_->header().keep) {
    for (const AutogradMessageId& message : worker_->messages()) freed_by_.emplace(message, worker_->number());
  }
  by_worker(worker_->conclude(ok), out);
}

void ContextPasses::by_worker(PassActions actions, PassActions& out) {
  append(std::move(actions), out);
  if (!worker_ || !worker_->over()) return;
  worker_.reset();
  if (released_) {
    out.push_back(ContextEmpty{});
    return;
  }
  // Messages that arrived early are handled now, before anything newer.
  inbox_.insert(inbox_.begin(), std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
}

void ContextPasses::by_ledger(PassActions actions, PassActions& out) {
  append(std::move(actions), out);
  if (ledger_->phase() == PassLedger::Phase::running && ledger_->mode() == Mode::smart && worker_ &&
      worker_->number() == ledger_->pass().number) {
    by_worker(worker_->ledger_closed(), out);
  }
  if (ledger_->phase() != PassLedger::Phase::ended) return;
  ledger_.reset();
  if (home_ && !released_ && home_->own_pass_ends()) end_context(released_context(context_), out);
}

void ContextPasses::by_home(PassActions actions, PassActions& out) {
  take_over(home_->decided(), out);
  append(std::move(actions), out);
}

// Messages to this worker itself are handled after the rest; gradients go through the session, with their tensors.
void ContextPasses::append(PassActions actions, PassActions& out) {
  out.reserve(out.size() + actions.size());
  for (PassAction& action : actions) {
    Send* send = std::get_if<Send>(&action);
    if (send && send->to == self_ && !std::holds_alternative<Grad>(send->message)) {
      inbox_.push_back({self_, std::move(send->message), 0});
    } else {
      out.push_back(std::move(action));
    }
  }
}

void ContextPasses::end_context(const Error& reason, PassActions& out) {
  if (released_) return;
  released_ = true;
  out.push_back(ContextReleased{workers()});
  // Sends `peer` the failure too: this worker may have lost the initiator, while `peer` may wait for this worker and
  // still reach the initiator.
  const auto fail = [&](WorkerLife peer, const PassId& pass) {
    if (peer != self_) out.push_back(Send{peer, Fail{pass, reason}});
  };
  for (const Waiting& waiting : waiting_) {
    if (const auto* mark = std::get_if<Mark>(&waiting.message)) fail(waiting.from, mark->header.pass);
    if (const auto* grad = std::get_if<Grad>(&waiting.message)) fail(waiting.from, grad->header.pass);
  }
  waiting_.clear();
  inbox_.clear();
  if (ledger_) by_ledger(ledger_->abandoned(reason), out);
  if (!worker_) {
    out.push_back(ContextEmpty{});
    return;
  }
  std::set<WorkerLife> next_to_it = worker_->watched();
  next_to_it.insert(worker_->header().initiator);
  for (const WorkerLife peer : next_to_it) fail(peer, worker_->header().pass);
  by_worker(worker_->conclude(false), out);
}

PassActions ContextPasses::finished(PassActions out) {
  while (!inbox_.empty() && !released_) {
    const Waiting next = std::move(inbox_.front());
    inbox_.pop_front();
    std::visit([&](const auto& m) { on(next.from, m, next.bytes, out); }, next.message);
  }
  return out;
}

}  // namespace caftan::autograd
