#include "caftan/autograd/internal/worker_pass.hpp"

#include <map>
#include <string>
#include <utility>

#include "lost_worker.hpp"

namespace caftan::autograd {
namespace {

constexpr std::size_t kMostMissing = 4;  // named in a report

// DA-5: the engine visits each message once. If it did not, by a defect, the pass must fail instead of adding a
// gradient twice.
Error visited_twice(AutogradMessageId message) {
  return Error(Errc::backward_failed,
               "the node of received message " + to_string(message) + " is met twice, or was never walked");
}

}  // namespace

WorkerPass::WorkerPass(WorkerLife self, PassHeader header, const RecordedMessages& recorded, PassLimits limits)
    : self_(self), header_(std::move(header)), recorded_(recorded), limits_(limits) {
  if (header_.mode == Mode::smart) return;
  phase_ = Phase::running;
  for (const AutogradMessageId message : recorded_.sends()) sends_.add(message);
}

PassActions WorkerPass::begin_at_roots() {
  PassActions actions = begin();
  used_up_.push_back(AutogradMessageId{});
  if (phase_ == Phase::running) {
    run_next(actions);
  } else {
    activity_ = Activity::walking;
    actions.push_back(WalkGraph{number(), true, {}});
  }
  return actions;
}

PassActions WorkerPass::begin() { return {BeginPass{number(), header_.mode, header_.keep, header_.held}}; }

PassActions WorkerPass::marked(WorkerLife from, const std::vector<AutogradMessageId>& messages) {
  if (phase_ == Phase::failed || is_concluded()) return {};
  if (phase_ != Phase::marking) {
    return fail(Error(Errc::malformed_payload, name_of(from) + " sends marks while gradients run"));
  }
  for (const AutogradMessageId message : messages) {
    if (recorded_.receiver_of(message) != from) {
      return fail(Error(Errc::malformed_payload,
                        name_of(from) + " marks message " + to_string(message) + ", which was not sent to it"));
    }
    if (!sends_.add(message)) {
      return fail(Error(Errc::malformed_payload, name_of(from) + " marks message " + to_string(message) + " twice"));
    }
    unwalked_.push_back(message);
  }
  if (from != self_) watched_.insert(from);  // it owes gradients
  PassActions actions;
  walk_next(actions);
  return actions;
}

PassActions WorkerPass::found(const std::vector<FoundRecv>& nodes) {
  if (phase_ != Phase::marking || is_concluded()) return {};
  std::map<WorkerLife, std::vector<AutogradMessageId>> by_sender;
  for (const FoundRecv& node : nodes) {
    if (node.context != header_.pass.context) {  // DA-3
      return fail(Error(Errc::foreign_context, "the graph reaches message " + to_string(node.message) + " of context " +
                                                   to_string(node.context) + " in a pass of " +
                                                   to_string(header_.pass.context)));
    }
    if (!recvs_.add(node.message)) return fail(visited_twice(node.message));
    by_sender[node.message.maker()].push_back(node.message);
    sent_.push_back(node.message);
  }
  PassActions actions;
  for (auto& [sender, messages] : by_sender) {
    if (sender != self_) watched_.insert(sender);
    actions.push_back(Send{sender, Mark{header_, std::move(messages)}});
  }
  return actions;
}

PassActions WorkerPass::walked() {
  activity_ = Activity::none;
  if (phase_ == Phase::failed || is_concluded()) return stopped();
  PassActions actions;
  Report report{header_.pass, std::exchange(used_up_, {}), std::exchange(sent_, {}), {}, false};
  actions.push_back(Send{header_.initiator, std::move(report)});
  walk_next(actions);
  return actions;
}

PassActions WorkerPass::ledger_closed() {
  PassActions actions;
  if (phase_ != Phase::marking || is_concluded()) return actions;
  phase_ = Phase::running;
  run_next(actions);
  return actions;
}

PassActions WorkerPass::gradient(WorkerLife from, AutogradMessageId message, std::uint64_t bytes) {
  if (phase_ == Phase::failed || is_concluded()) return {};
  // A gradient is sent only after the ledger has closed, which has waited for every walk.
  if (phase_ == Phase::marking && (is_active() || is_initiator())) {
    return fail(Error(Errc::invalid_gradient, name_of(from) + " sends a gradient before all marks were walked"));
  }
  if (!sends_.finish(message) || recorded_.receiver_of(message) != from) {
    return fail(Error(Errc::invalid_gradient, name_of(from) + " sends a gradient for message " + to_string(message) +
                                                  ", which is not expected from it in pass " +
                                                  to_string(header_.pass)));
  }
  if (from != self_) watched_.insert(from);
  queued_bytes_ += bytes;
  if (queued_bytes_ > limits_.staged_bytes || staged_bytes_ > limits_.staged_bytes - queued_bytes_) {  // DA-17
    return fail(Error(Errc::limit_exceeded, "gradients of context " + to_string(header_.pass.context) + " exceed " +
                                                std::to_string(limits_.staged_bytes) + " bytes on this worker"));
  }
  phase_ = Phase::running;
  unfed_.push_back(message);
  PassActions actions;
  run_next(actions);
  return actions;
}

PassActions WorkerPass::produced(AutogradMessageId message) {
  if (phase_ != Phase::running || is_concluded()) return {};
  const WorkerLife sender = message.maker();
  if (header_.mode == Mode::fast) {
    recvs_.add(message);
    if (sender != self_) watched_.insert(sender);
    sent_.push_back(message);
  }
  if (!recvs_.finish(message)) return fail(visited_twice(message));
  return {Send{sender, Grad{header_, message}}};
}

PassActions WorkerPass::ran(const RunResult& result) {
  activity_ = Activity::none;
  if (phase_ == Phase::failed || is_concluded()) return stopped();
  PassActions actions;
  staged_bytes_ = result.staged_bytes;
  if (staged_bytes_ > limits_.staged_bytes) {
    return fail(Error(Errc::limit_exceeded, "staged gradients of context " + to_string(header_.pass.context) +
                                                " exceed " + std::to_string(limits_.staged_bytes) + " bytes"));
  }
  if (!unfed_.empty()) {
    run_next(actions);
    return actions;
  }
  const bool all_arrived = sends_.all_done();
  if (all_arrived && (!result.drained || !recvs_.all_done())) {
    return fail(Error(Errc::backward_failed, "all gradients have arrived, but not every node has run"));
  }
  if (all_arrived) phase_ = Phase::done;
  if (header_.mode == Mode::fast) {
    report_run(actions, all_arrived);
  } else if (all_arrived) {
    actions.push_back(Send{header_.initiator, Done{header_.pass}});
  }
  return actions;
}

PassActions WorkerPass::graph_failed(const Error& error) {
  activity_ = Activity::none;
  if (phase_ == Phase::failed || is_concluded()) return stopped();
  return fail(error);
}

PassActions WorkerPass::fail(const Error& error) {
  PassActions actions;
  if (phase_ == Phase::failed || is_concluded()) return actions;
  phase_ = Phase::failed;
  error_ = error;
  if (is_active()) actions.push_back(StopGraph{number()});
  say_failed(actions);
  return actions;
}

PassActions WorkerPass::peer_down(WorkerLife peer, const std::string& name) {
  const bool is_lost_initiator = peer == header_.initiator;
  if (is_concluded() || (!is_lost_initiator && watched_.count(peer) == 0)) return {};
  if (is_lost_initiator) initiator_lost_ = true;
  if (phase_ == Phase::failed) {
    // The failure is sent to the home, because this worker's earlier messages may not have reached the initiator.
    PassActions actions;
    if (is_lost_initiator) say_failed(actions);
    return actions;
  }
  return fail(lost_worker(peer, name, "which pass " + to_string(header_.pass) + " needs here"));
}

PassActions WorkerPass::conclude(bool ok) {
  if (is_concluded()) return {};
  outcome_ = ok ? Outcome::succeeded : Outcome::failed;
  if (!is_active()) return stopped();
  PassActions actions;
  if (phase_ != Phase::failed) actions.push_back(StopGraph{number()});
  return actions;
}

std::vector<AutogradMessageId> WorkerPass::messages() const {
  std::vector<AutogradMessageId> all;
  all.reserve(sends_.messages.size());
  for (const auto& [message, arrived] : sends_.messages) all.push_back(message);
  return all;
}

void WorkerPass::walk_next(PassActions& actions) {
  if (is_active() || unwalked_.empty()) return;
  activity_ = Activity::walking;
  used_up_ = unwalked_;
  actions.push_back(WalkGraph{number(), false, std::exchange(unwalked_, {})});
}

void WorkerPass::run_next(PassActions& actions) {
  if (is_active()) return;
  activity_ = Activity::running;
  RunGraph run{number(), counted_, false, {}, std::exchange(unfed_, {})};
  queued_bytes_ = 0;
  if (!counted_) {
    counted_ = true;
    run.from_roots = is_initiator();
    run.sources = messages();
  }
  if (header_.mode == Mode::fast) used_up_.insert(used_up_.end(), run.feed.begin(), run.feed.end());
  actions.push_back(std::move(run));
}

void WorkerPass::report_run(PassActions& actions, bool drained) {
  Report report{header_.pass, std::exchange(used_up_, {}), std::exchange(sent_, {}), {}, drained};
  if (!drained) report.missing = missing();
  actions.push_back(Send{header_.initiator, std::move(report)});
}

void WorkerPass::say_failed(PassActions& actions) {
  const WorkerLife to = initiator_lost_ ? header_.pass.context.maker() : header_.initiator;
  actions.push_back(Send{to, Fail{header_.pass, error_}});
}

// Once the pass is decided, merges or drops its gradients. Precondition: no walk or run is under way.
PassActions WorkerPass::stopped() {
  if (!is_concluded()) return {};
  if (outcome_ == Outcome::succeeded) return {MergeGradients{number()}};
  return {DropGradients{number()}};
}

std::vector<AutogradMessageId> WorkerPass::missing() const {
  std::vector<AutogradMessageId> some;
  for (const auto& [message, arrived] : sends_.messages) {
    if (!arrived && some.size() < kMostMissing) some.push_back(message);
  }
  return some;
}

}  // namespace caftan::autograd
