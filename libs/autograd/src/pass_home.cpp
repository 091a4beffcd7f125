#include "caftan/autograd/internal/pass_home.hpp"

#include <cassert>

#include "lost_worker.hpp"

namespace caftan::autograd {

PassActions PassHome::open(WorkerLife initiator) {
  if (initiator != context_.maker()) joined_.insert(initiator);
  if (initiator_) {
    const std::string text = "pass " + to_string(PassId{context_, *open_pass()}) + " of " + name_of(*initiator_) +
                             " is still open: wait for it, or use a context of its own";
    return {Send{initiator, Refused{context_, Error(Errc::pass_busy, text)}}};
  }
  if (decided_.failed().size() >= DecidedSet::kMostFailed) {
    const std::string text = std::to_string(DecidedSet::kMostFailed) + " passes of context " + to_string(context_) +
                             " have failed: begin a new context";
    return {Send{initiator, Refused{context_, Error(Errc::limit_exceeded, text)}}};
  }
  initiator_ = initiator;
  initiators_.insert(initiator);
  return {Send{initiator, Granted{{context_, *open_pass()}, decided_}}};
}

PassActions PassHome::decide(WorkerLife from, const Decide& decide) {
  const PassNumber pass = decide.pass.number;
  if (open_pass() == pass && initiator_ == from) write(decide.outcome);
  if (!decided_.contains(pass)) return {};
  return {Send{from, Decided{decide.pass, outcome(pass), decided_}}};
}

PassActions PassHome::fail(WorkerLife from, const Fail& fail) {
  const PassNumber pass = fail.pass.number;
  PassActions actions;
  if (open_pass() == pass) {
    const WorkerLife initiator = *initiator_;
    write(fail.error);
    actions.push_back(Send{initiator, Decided{fail.pass, fail.error, decided_}});
    send_to_joined(actions, from);
  }
  if (decided_.contains(pass)) actions.push_back(Send{from, end_of(pass)});
  return actions;
}

PassActions PassHome::joined(WorkerLife worker) {
  joined_.insert(worker);
  if (decided_.up_to().value == 0) return {};
  return {Send{worker, end_of(decided_.up_to())}};
}

PassActions PassHome::peer_down(WorkerLife peer, const std::string& name) {
  PassActions actions;
  joined_.erase(peer);
  if (initiator_ == peer) {
    write(lost_worker(peer, name, "which ran the pass"));
  }
  // The lost initiator may still be connected with other workers, to which it does not announce the outcome: so the
  // home does.
  if (initiators_.erase(peer) != 0 && decided_.up_to().value != 0) send_to_joined(actions, std::nullopt);
  return actions;
}

void PassHome::own_pass_begins() {
  assert(!own_pass_);
  own_pass_ = true;
}

bool PassHome::own_pass_ends() {
  assert(own_pass_);
  own_pass_ = false;
  return release_asked_;
}

bool PassHome::release() {
  if (release_asked_) return false;
  release_asked_ = true;
  return !own_pass_;
}

std::optional<PassNumber> PassHome::open_pass() const {
  if (!initiator_) return std::nullopt;
  return PassNumber{decided_.up_to().value + 1};
}

// The commit point of the open pass.
void PassHome::write(Result<void> outcome) {
  initiator_.reset();
  decided_.decide_next(outcome.has_value());
  if (!outcome) failures_.emplace(decided_.up_to(), outcome.error());
}

Result<void> PassHome::outcome(PassNumber pass) const {
  if (decided_.is_ok(pass)) return {};
  return failures_.at(pass);
}

End PassHome::end_of(PassNumber pass) const { return {{context_, pass}, outcome(pass), decided_}; }

void PassHome::send_to_joined(PassActions& actions, std::optional<WorkerLife> except) const {
  for (const WorkerLife worker : joined_) {
    if (worker != except) actions.push_back(Send{worker, end_of(decided_.up_to())});
  }
}

}  // namespace caftan::autograd
