// Lanes, the readers of frames, and the end of sessions: what the transport and the readers must do by the rules.
#include <algorithm>
#include <utility>

#include "rref_model_world.hpp"

namespace caftan::rpc::model {
int World::connection_between(int first, int second) const {
  const auto at = current_.find({std::min(first, second), std::max(first, second)});
  return at == current_.end() ? -1 : at->second;
}

// Returns whether the connection is open as its worker sees it: one that is lost but not declared lost yet still takes
// frames.
bool World::open(int worker, int number) const {
  const Connection& connection = connections_[number];
  const int side = side_of(worker, number);
  return workers_[worker].life == connection.life[side] && !connection.declared[side];
}

PeerSession World::seen(int worker, int number) const {
  const Connection& connection = connections_[number];
  const int peer = 1 - side_of(worker, number);
  return {{WorkerId{static_cast<std::uint32_t>(connection.end[peer])}, connection.life[peer]},
          static_cast<std::uint64_t>(number) + 1};
}

bool World::send(int worker, int number, Frame frame) {
  if (!open(worker, number)) return false;
  Connection& connection = connections_[number];
  if (connection.cut) return true;
  auto& lane = connection.lane[side_of(worker, number)];
  if (without_ == Without::rr2_one_order && frame.kind == Frame::Kind::down) {
    lane.push_front(std::move(frame));
  } else {
    lane.push_back(std::move(frame));
  }
  return true;
}

bool World::send(int worker, const PeerSession& session, Frame frame) {
  return send(worker, number_of(session), std::move(frame));
}

void World::read(int number, int side, bool refuse) {
  const Frame frame = std::move(connections_[number].lane[side].front());
  connections_[number].lane[side].pop_front();
  const int worker = connections_[number].end[1 - side];
  const PeerSession session = seen(worker, number);
  reading_ = {&frame, connections_[number].end[side], number};
  switch (frame.kind) {
    case Frame::Kind::call:
      read_call(worker, number, frame, refuse);
      break;
    case Frame::Kind::reply:
      read_reply(worker, number, frame);
      break;
    case Frame::Kind::fork:
      read_fork(worker, number, frame);
      break;
    case Frame::Kind::use:
      read_use(worker, number, frame);
      break;
    case Frame::Kind::monitor:
      read_monitor(worker, number, frame);
      break;
    case Frame::Kind::answer:
      say(name(worker) + " reads the answer to fork " + caftan::to_string(frame.fork) +
          (frame.code == Errc::ok ? ": ok" : ": " + std::string(caftan::to_string(frame.code))));
      if (frame.code == Errc::ok) truth_[frame.fork].confirmed = truth_[frame.fork].answered = true;
      post_user(worker, frame.fork, {.kind = Mail::Kind::answered, .code = frame.code});
      break;
    case Frame::Kind::accept:
      say(name(worker) + " reads the acceptance of fork " + caftan::to_string(frame.fork));
      post_user(worker, frame.parent, {.kind = Mail::Kind::child_accepted, .fork = frame.fork, .session = session});
      break;
    case Frame::Kind::down:
      say(name(worker) + " reads the down of fork " + caftan::to_string(frame.fork));
      post_owner(worker, frame.value, {.kind = Mail::Kind::down, .fork = frame.fork, .session = session});
      break;
    case Frame::Kind::exit_to_parent:
      say(name(worker) + " reads the exit of child " + caftan::to_string(frame.fork));
      post_user(worker, frame.parent, {.kind = Mail::Kind::child_exited, .fork = frame.fork, .session = session});
      break;
    case Frame::Kind::exit_to_child:
      say(name(worker) + " reads the exit of parent " + caftan::to_string(frame.parent));
      post_user(worker, frame.fork, {.kind = Mail::Kind::parent_exited});
      break;
  }
  reading_ = {};
}

// RR-3: an entry becomes an actor, or a hold, before anything else of the frame is looked at.
Errc World::read_entry(int worker, int number, const Entry& entry, int id, Call& call) {
  Worker& self = workers_[worker];
  const PeerSession session = seen(worker, number);
  const Value& value = values_[entry.value];
  if (value.owner == worker) {
    if (self.owners.count(entry.value) != 0 && is_owner(worker, entry.value)) {
      post_owner(worker, entry.value, {.kind = Mail::Kind::passed_back, .fork = entry.fork, .session = session});
      call.tokens.push_back({entry.value, true, {}, 1});
      return Errc::ok;
    }
    if (is_owner(worker, entry.value)) {
      check_refusal(entry.value, "a reference passed back");
    } else if (entry.parent) {  // to the sender this worker is another user, which will never own the value
      send(worker, number,
           {.kind = Frame::Kind::exit_to_parent, .value = entry.value, .fork = entry.fork, .parent = *entry.parent});
    }
    return Errc::rref_deleted;
  }
  const std::string owner = name(value.owner);
  UserActor actor{.rules = entry.parent ? UserFork::from_parent(entry.fork, {*entry.parent, session}, owner)
                                        : UserFork::from_owner(entry.fork, session, owner),
                  .value = entry.value};
  if (!entry.parent && without_ != Without::rr4_manifest_is_the_watch) actor.watched_in = session;
  if (entry.parent && without_ != Without::rr6_waiting_for_confirmation) {
    actor.waiting_call = id;
    ++call.unconfirmed;
  }
  self.users.emplace(entry.fork, std::move(actor));
  post_user(worker, entry.fork, {.kind = Mail::Kind::start});
  call.tokens.push_back({entry.value, false, entry.fork, 1});
  return Errc::ok;
}

void World::read_call(int worker, int number, const Frame& frame, bool refuse) {
  Worker& self = workers_[worker];
  say(name(worker) + " reads call " + std::to_string(frame.call) + (refuse ? " and refuses it" : ""));
  if (refuse && without_ == Without::rr3_manifest_first) {
    send(worker, number, {.kind = Frame::Kind::reply, .call = frame.call, .code = Errc::unknown_function});
    return;
  }
  const int id = ++calls_;
  Call& job = self.calls[id];
  job.job = true;
  job.connection = number;
  job.peer_call = frame.call;
  if (frame.value >= 0) {
    job.value = frame.value;
    self.owners[frame.value];
    post_owner(worker, frame.value,
               {.kind = Mail::Kind::created_by, .fork = frame.fork, .session = seen(worker, number)});
    if (without_ == Without::rr8_unfinished_creation) {
      post_owner(worker, frame.value, {.kind = Mail::Kind::creation_finished});
    }
    for (const ForkRequest& request : self.ledger.created(values_[frame.value].id, values_[frame.value].creation)) {
      post_owner(
          worker, frame.value,
          {.kind = Mail::Kind::requested, .fork = request.fork, .parent = request.parent, .session = request.session});
    }
  }
  Errc worst = refuse ? Errc::unknown_function : Errc::ok;
  for (const Entry& entry : frame.entries) {
    if (const Errc code = read_entry(worker, number, entry, id, job); code != Errc::ok) worst = code;
  }
  if (worst != Errc::ok) return fail_call(worker, id, worst);
  if (job.unconfirmed == 0) show(worker, id);
}

void World::read_reply(int worker, int number, const Frame& frame) {
  Worker& self = workers_[worker];
  say(name(worker) + " reads the reply to call " + std::to_string(frame.call) +
      (frame.code == Errc::ok ? "" : ": " + std::string(caftan::to_string(frame.code))));
  const auto at = self.calls.find(frame.call);
  const bool late = at == self.calls.end();
  Call late_call;
  Call& call = late ? late_call : at->second;
  Errc worst = frame.code;
  for (const Entry& entry : frame.entries) {
    const Errc code = read_entry(worker, number, entry, late ? -1 : frame.call, call);
    if (code != Errc::ok) worst = code;
  }
  if (late) {
    for (const Token& token : call.tokens) drop(worker, token);
  } else if (worst != Errc::ok) {
    fail_call(worker, frame.call, worst);
  } else {
    if (std::exchange(call.use, false)) {
      drop(worker, {call.value, false, call.fork});
    } else if (call.value >= 0) {
      post_user(worker, call.fork, {.kind = Mail::Kind::creation_answered, .code = Errc::ok});
    }
    call.value = -1;  // the call is answered; only references in the reply may still have to be confirmed
    if (call.unconfirmed == 0) show(worker, frame.call);
  }
}

void World::read_fork(int worker, int number, const Frame& frame) {
  Worker& self = workers_[worker];
  const PeerSession session = seen(worker, number);
  const ForkRequest request{values_[frame.value].id, values_[frame.value].creation, frame.fork, frame.parent, session};
  say(name(worker) + " reads the request of fork " + caftan::to_string(frame.fork));
  if (self.owners.count(frame.value) != 0) {
    post_owner(worker, frame.value,
               {.kind = Mail::Kind::requested, .fork = frame.fork, .parent = frame.parent, .session = session});
  } else if (without_ == Without::rr9_parking || !self.ledger.park(request)) {
    refuse_forks(worker, {request}, Errc::rref_deleted);
  }
}

void World::refuse_forks(int worker, const std::vector<ForkRequest>& requests, Errc why) {
  for (const ForkRequest& request : requests) {
    for (std::size_t value = 0; value < values_.size(); ++value) {
      if (values_[value].id == request.rref) check_refusal(static_cast<int>(value), "a fork request");
    }
    send(worker, request.session, {.kind = Frame::Kind::answer, .fork = request.fork, .code = why});
  }
}

void World::read_use(int worker, int number, const Frame& frame) {
  Worker& self = workers_[worker];
  say(name(worker) + " reads call " + std::to_string(frame.call) + " on v" + std::to_string(frame.value));
  if (self.owners.count(frame.value) != 0) {
    post_owner(worker, frame.value,
               {.kind = Mail::Kind::use,
                .session = seen(worker, number),
                .call = frame.call,
                .used = frame.code == Errc::ok ? Use::fetch : Use::method});
    return;
  }
  check_refusal(frame.value, "a call on the value");
  send(worker, number, {.kind = Frame::Kind::reply, .call = frame.call, .code = Errc::rref_deleted});
}

void World::read_monitor(int worker, int number, const Frame& frame) {
  const auto at = workers_[worker].users.find(frame.fork);
  if (at != workers_[worker].users.end()) {
    at->second.watched_in = seen(worker, number);
  } else if (without_ != Without::watches) {
    send(worker, number, {.kind = Frame::Kind::down, .value = frame.value, .fork = frame.fork});
  }
}

// RR-12: a session that ends first reads what was received completely, then ends every proxy; only then may the next
// session with that peer read.
void World::end_session(int worker, int number) {
  say(name(worker) + " declares connection " + std::to_string(number + 1) + " lost");
  if (without_ == Without::rr12_drain_before_end) {
    end_proxies(worker, number);
    return drain(worker, number);
  }
  drain(worker, number);
  end_proxies(worker, number);
}

void World::drain(int worker, int number) {
  const int side = 1 - side_of(worker, number);
  while (!connections_[number].lane[side].empty()) {
    read(number, side, false);
    if (prompt_) run_all();
  }
}

void World::end_proxies(int worker, int number) {
  Worker& self = workers_[worker];
  const PeerSession session = seen(worker, number);
  connections_[number].declared[side_of(worker, number)] = true;
  for (auto& [value, actor] : self.owners) {
    for (const Watch& watch : actor.watched) {
      if (watch.second == session) {
        post_owner(worker, value, {.kind = Mail::Kind::down, .fork = watch.first, .session = session});
      }
    }
  }
  for (auto& [fork, actor] : self.users) {
    for (const Watch& child : actor.children) {
      if (child.second == session) {
        post_user(worker, fork, {.kind = Mail::Kind::child_exited, .fork = child.first, .session = session});
      }
    }
    const auto parent = actor.rules.linked_parent();
    if (parent && parent->session == session) post_user(worker, fork, {.kind = Mail::Kind::parent_exited});
    if (without_ != Without::rr10_peer_down_for_good) {
      post_user(worker, fork, {.kind = Mail::Kind::owner_lost, .session = session});
    }
  }
  const std::vector<ForkRequest> never_created = self.ledger.session_ended(session);
  if (without_ != Without::rr9_end_of_parking) refuse_forks(worker, never_created, Errc::rref_deleted);
  std::vector<int> unanswered;
  for (const auto& [id, call] : self.calls) {
    if (!call.job && call.connection == number && call.unconfirmed == 0) unanswered.push_back(id);
  }
  for (const int id : unanswered) fail_call(worker, id, Errc::peer_down);
}

}  // namespace caftan::rpc::model
