// The model's actors of values and forks: reads their mailboxes and carries out the actions of ForkTable and UserFork,
// as owner_rref_actor and user_rref_actor do.
#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>

#include "rref_model_world.hpp"

namespace caftan::rpc::model {
namespace {

Result<void> result_of(Errc code) {
  if (code == Errc::ok) return {};
  return Error(code, "");
}

void forget(std::vector<Watch>& watches, const Watch& watch) {
  std::erase_if(watches, [&](const Watch& other) { return other == watch; });
}

}  // namespace

void World::post_user(int worker, ForkId fork, Mail mail) {
  const auto at = workers_[worker].users.find(fork);
  if (at == workers_[worker].users.end()) return;
  at->second.mailbox.push_back(std::move(mail));
  ready_.push_back({worker, -1, fork});
}

void World::post_owner(int worker, int value, Mail mail) {
  const auto at = workers_[worker].owners.find(value);
  if (at == workers_[worker].owners.end()) return;
  at->second.mailbox.push_back(std::move(mail));
  ready_.push_back({worker, value, {}});
}

bool World::run_one(std::uint32_t choice) {
  if (ready_.empty()) return false;
  const std::size_t at = choice % ready_.size();
  const Ready ready = ready_[at];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
  if (ready.value >= 0) {
    run_owner(ready.worker, ready.value);
  } else {
    run_user(ready.worker, ready.fork);
  }
  return true;
}

void World::run_all() {
  while (run_one(0)) {
  }
}

void World::run_owner(int worker, int value) {
  const auto at = workers_[worker].owners.find(value);
  if (at == workers_[worker].owners.end() || at->second.mailbox.empty()) return;
  OwnerActor& actor = at->second;
  const Mail mail = std::move(actor.mailbox.front());
  actor.mailbox.pop_front();
  const OwnerActions actions = handle(worker, value, actor, mail);
  if (act(worker, value, actor, actions, mail.kind == Mail::Kind::handed_over)) end_value(worker, value);
}

OwnerActions World::handle(int worker, int value, OwnerActor& actor, const Mail& mail) {
  ForkTable& rules = actor.rules;
  switch (mail.kind) {
    case Mail::Kind::created_by:
      return rules.created_by(mail.fork, mail.session);
    case Mail::Kind::handed_over:
      return rules.handed_over(mail.fork, mail.session);
    case Mail::Kind::requested:
      return rules.requested(mail.fork, mail.parent, mail.session);
    case Mail::Kind::passed_back: {
      Result<OwnerActions> held = rules.passed_back(mail.fork, mail.parent, mail.session);
      if (held) return *std::move(held);
      break_rule("RR-4: a reference passed back found v" + std::to_string(value) + " ended");
      return {};
    }
    case Mail::Kind::down:
      forget(actor.watched, {mail.fork, mail.session});
      return rules.down(mail.fork, mail.session);
    case Mail::Kind::use:
      begin_use(worker, value, mail, actor);
      return {};
    case Mail::Kind::released:
      if (rules.in_use(mail.used) > 0) return rules.released(mail.used);
      break_rule("RR-13: one handle of v" + std::to_string(value) + " was released twice");
      return {};
    case Mail::Kind::creation_finished:
      return rules.creation_finished();
    default:
      break_rule("the model sent a user's message to an owner");
      return {};
  }
}

void World::begin_use(int worker, int value, const Mail& mail, OwnerActor& actor) {
  const int connection = number_of(mail.session);
  // Removing the rule means that a running method is not counted.
  const Result<void> counted = without_ == Without::rr8_running_methods && !actor.rules.ended()
                                   ? Result<void>{}
                                   : actor.rules.acquired(mail.used);
  if (!counted) {
    check_refusal(value, "a call on the value");
    send(worker, connection, {.kind = Frame::Kind::reply, .call = mail.call, .code = counted.error().code()});
    return;
  }
  Call& job = workers_[worker].calls[++calls_];
  job.job = job.running = job.use = true;
  job.used = mail.used;
  job.connection = connection;
  job.peer_call = mail.call;
  job.value = value;
}

// Carries out what the ForkTable of `value` asks for. Returns true if the value ends.
bool World::act(int worker, int value, OwnerActor& actor, const OwnerActions& actions, bool by_manifest) {
  bool ends = false;
  for (const OwnerAction& action : actions) {
    if (const auto* monitor = std::get_if<MonitorFork>(&action)) {
      if (!open(worker, number_of(monitor->session))) {
        post_owner(worker, value, {.kind = Mail::Kind::down, .fork = monitor->fork, .session = monitor->session});
      } else if (by_manifest || without_ != Without::rr7_held_proxies) {
        actor.watched.emplace_back(monitor->fork, monitor->session);
        if (!by_manifest) {
          send(worker, monitor->session, {.kind = Frame::Kind::monitor, .value = value, .fork = monitor->fork});
        }
      }
    } else if (const auto* demonitor = std::get_if<DemonitorFork>(&action)) {
      forget(actor.watched, {demonitor->fork, demonitor->session});
    } else if (const auto* answer = std::get_if<AnswerFork>(&action)) {
      if (answer->code != Errc::ok) check_refusal(value, "a fork request");
      send(worker, answer->session, {.kind = Frame::Kind::answer, .fork = answer->fork, .code = answer->code});
    } else {
      ends = true;
    }
  }
  return ends;
}

// RR-8: a value that ends still answers the messages that are left in its actor's mailbox.
void World::end_value(int worker, int value) {
  say("v" + std::to_string(value) + " ends");
  if (reachable(value)) break_rule("safety: v" + std::to_string(value) + " ended while it could be reached");
  OwnerActor last = std::move(workers_[worker].owners.at(value));
  workers_[worker].owners.erase(value);
  if (without_ == Without::rr8_answers_at_the_end) return;
  for (const Mail& mail : last.mailbox) act(worker, value, last, handle(worker, value, last, mail), false);
}

void World::run_user(int worker, ForkId fork) {
  const auto at = workers_[worker].users.find(fork);
  if (at == workers_[worker].users.end() || at->second.mailbox.empty()) return;
  UserActor& actor = at->second;
  const Mail mail = std::move(actor.mailbox.front());
  actor.mailbox.pop_front();
  bool ends = act(worker, actor, handle(worker, actor, mail));
  if (without_ == Without::rr7_waiting_for_children) {
    const UserFork& rules = actor.rules;
    const bool answered = rules.state() == UserFork::State::confirmed || rules.state() == UserFork::State::failed;
    ends = ends || (answered && !rules.has_handle() && rules.pending_children() > 0);
  }
  if (ends) end_fork(worker, fork);
}

UserActions World::handle(int worker, UserActor& actor, const Mail& mail) {
  UserFork& rules = actor.rules;
  switch (mail.kind) {
    case Mail::Kind::start:
      if (const auto parent = rules.linked_parent(); parent && without_ == Without::rr5_answer_before_accept) {
        send(worker, parent->session, {.kind = Frame::Kind::accept, .fork = rules.id(), .parent = parent->fork});
      }
      return rules.start();
    case Mail::Kind::session_opened:
      if (actor.unsent) send_fork_request(worker, actor);
      return {};
    case Mail::Kind::answered:
      return rules.answered(result_of(mail.code));
    case Mail::Kind::creation_answered:
      return rules.creation_answered(result_of(mail.code));
    case Mail::Kind::deadline:
      return rules.deadline();
    case Mail::Kind::owner_lost:
      return rules.owner_lost(mail.session);
    case Mail::Kind::parent_exited:
      rules.parent_exited();
      return without_ == Without::rr10_owners_word ? rules.answered({}) : UserActions{};
    case Mail::Kind::child_handed_over:
      return rules.child_handed_over(mail.fork, mail.session);
    case Mail::Kind::child_accepted:
      return rules.child_accepted(mail.fork, mail.session);
    case Mail::Kind::child_exited:
      forget(actor.children, {mail.fork, mail.session});
      return rules.child_exited(mail.fork, mail.session);
    case Mail::Kind::handle_dropped:
      return rules.handle_dropped();
    default:
      break_rule("the model sent an owner's message to a user");
      return {};
  }
}

// Carries out what the UserFork of `actor` asks for. Returns true if the fork ends.
bool World::act(int worker, UserActor& actor, const UserActions& actions) {
  bool ends = false;
  for (const UserAction& action : actions) {
    if (std::holds_alternative<SendForkRequest>(action)) {
      send_fork_request(worker, actor);
    } else if (const auto* accept = std::get_if<SendAccept>(&action)) {
      if (without_ != Without::rr5_accept) {
        send(worker, accept->session, {.kind = Frame::Kind::accept, .fork = accept->fork, .parent = accept->parent});
      }
    } else if (const auto* link = std::get_if<LinkChild>(&action)) {
      if (open(worker, number_of(link->session))) {
        actor.children.emplace_back(link->child, link->session);
      } else {
        post_user(worker, actor.rules.id(),
                  {.kind = Mail::Kind::child_exited, .fork = link->child, .session = link->session});
      }
    } else if (const auto* unlink = std::get_if<UnlinkChild>(&action)) {
      forget(actor.children, {unlink->child, unlink->session});
    } else if (std::holds_alternative<ForkConfirmed>(action)) {
      confirm(worker, actor);
    } else if (const auto* refused = std::get_if<ForkRefused>(&action)) {
      fail_call(worker, std::exchange(actor.waiting_call, -1), refused->error.code());
    } else {
      ends = true;
    }
  }
  return ends;
}

void World::send_fork_request(int worker, UserActor& actor) {
  actor.unsent = true;
  const Value& value = values_[actor.value];
  const int connection = connection_between(worker, value.owner);
  if (connection < 0 || !open(worker, connection)) return;
  const PeerSession session = seen(worker, connection);
  if (session.peer.incarnation != value.owner_life) {
    // The session is with the owner's next life: the value is gone, so the fork does not wait for a reply (RR-11).
    return post_user(worker, actor.rules.id(), {.kind = Mail::Kind::deadline});
  }
  const ForkId parent = actor.rules.linked_parent() ? actor.rules.linked_parent()->fork : ForkId{};
  send(worker, connection,
       {.kind = Frame::Kind::fork, .value = actor.value, .fork = actor.rules.id(), .parent = parent});
  actor.unsent = false;
  actor.rules.request_sent(session);
  truth_[actor.rules.id()].connection = connection;
}

// A fork ends. The owner learns of the end by a down message, a parent that is still linked by an exit.
void World::end_fork(int worker, ForkId fork) {
  UserActor last = std::move(workers_[worker].users.at(fork));
  workers_[worker].users.erase(fork);
  say("fork " + caftan::to_string(fork) + " ends");
  if (without_ != Without::watches) {
    if (last.watched_in) {
      send(worker, *last.watched_in, {.kind = Frame::Kind::down, .value = last.value, .fork = fork});
    }
    if (const auto parent = last.rules.linked_parent()) {
      send(worker, parent->session,
           {.kind = Frame::Kind::exit_to_parent, .value = last.value, .fork = fork, .parent = parent->fork});
    }
    for (const Watch& child : last.children) {
      send(worker, child.second,
           {.kind = Frame::Kind::exit_to_child, .value = last.value, .fork = child.first, .parent = fork});
    }
  }
}

void World::confirm(int worker, UserActor& actor) {
  const int id = std::exchange(actor.waiting_call, -1);
  const auto at = workers_[worker].calls.find(id);
  if (at != workers_[worker].calls.end() && --at->second.unconfirmed == 0) show(worker, id);
}

// RR-6: hands the references of a call to user code, once all of them are confirmed.
void World::show(int worker, int id) {
  Worker& self = workers_[worker];
  Call& call = self.calls.at(id);
  for (const Token& token : call.tokens) {
    if (!token.local && !truth_[token.fork].confirmed) {
      break_rule("RR-6: user code sees fork " + caftan::to_string(token.fork) + " before the owner counts it");
    }
  }
  if (call.job) {
    call.running = true;
  } else {
    self.tokens.insert(self.tokens.end(), call.tokens.begin(), call.tokens.end());
    self.calls.erase(id);
  }
}

void World::fail_call(int worker, int id, Errc why) {
  Worker& self = workers_[worker];
  const auto at = self.calls.find(id);
  if (at == self.calls.end()) return;
  const Call call = std::move(at->second);
  self.calls.erase(at);
  for (const Token& token : call.tokens) drop(worker, token);
  if (call.job) {
    if (call.value >= 0) post_owner(worker, call.value, {.kind = Mail::Kind::creation_finished});
    send(worker, call.connection, {.kind = Frame::Kind::reply, .call = call.peer_call, .code = why});
  } else if (call.use) {
    drop(worker, {call.value, false, call.fork});
  } else if (call.value >= 0) {
    post_user(worker, call.fork, {.kind = Mail::Kind::creation_answered, .code = why});
  }
}

}  // namespace caftan::rpc::model
