// The steps of a history: what user code does with its references, and which faults happen to workers and connections.
#include <algorithm>
#include <cassert>

#include "rref_model_world.hpp"

namespace caftan::rpc::model {
namespace {

template <class List>
auto& pick(List& list, std::uint32_t choice) {
  return list[choice % list.size()];
}

std::string name_of_value(int value) { return "v" + std::to_string(value); }

std::string token_name(const Token& token) {
  return name_of_value(token.value) + (token.local ? " (hold)" : " (fork " + caftan::to_string(token.fork) + ")");
}

}  // namespace

std::vector<int> World::alive() const {
  std::vector<int> all;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].alive) all.push_back(static_cast<int>(i));
  }
  return all;
}

bool World::is_owner(int worker, int value) const {
  return values_[value].owner == worker && values_[value].owner_life == workers_[worker].life;
}

ForkId World::next_fork(int worker) {
  Worker& self = workers_[worker];
  const Incarnation life = without_ == Without::rr1_incarnation_in_ids ? Incarnation{1} : self.life;
  return {WorkerId{static_cast<std::uint32_t>(worker)}, life, ++self.ids};
}

void World::start_worker(int worker) {
  workers_[worker] = Worker{};
  workers_[worker].life = Incarnation{++lives_};
  connect(worker, worker);
}

void World::step(const Step& step) {
  const std::vector<int> up = alive();
  switch (step.act) {
    case Act::call:
      return call(step);
    case Act::create:
      return create(step);
    case Act::create_here:
      return create_here(step);
    case Act::use:
      return use(step);
    case Act::finish:
      return finish(step);
    case Act::copy:
      return copy_or_drop(step, true);
    case Act::drop:
      return copy_or_drop(step, false);
    case Act::deliver: {
      std::vector<std::pair<int, int>> lanes;
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        const Connection& connection = connections_[i];
        for (int side = 0; side < 2; ++side) {
          const int reader = connection.end[1 - side];
          const bool listens = workers_[reader].alive && workers_[reader].life == connection.life[1 - side];
          if (listens && !connection.lane[side].empty() && !connection.declared[1 - side]) {
            lanes.emplace_back(static_cast<int>(i), side);
          }
        }
      }
      if (lanes.empty()) return;
      const auto [connection, side] = pick(lanes, step.a);
      return read(connection, side, step.c % 12 == 0);
    }
    case Act::run_actor:
      run_one(step.a);
      return;
    case Act::give_up:
      return give_up(step);
    case Act::deadline:
      return pass_deadline(step);
    case Act::cut:
      return lose(step, false);
    case Act::declare:
      return lose(step, true);
    case Act::reconnect:
      return reconnect(step);
    case Act::crash:
      if (!up.empty()) crash(pick(up, step.a), step);
      return;
    case Act::restart:
      for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (workers_[i].alive) continue;
        start_worker(static_cast<int>(i));
        return say(name(static_cast<int>(i)) + " starts again");
      }
      return;
    case Act::kill:
      return kill(step);
  }
}

// Writes the manifest entry and announces the hand-over, before the frame is offered to the lane.
std::optional<Entry> World::hand_over(int worker, int connection, const Token& token) {
  const PeerSession session = seen(worker, connection);
  const Value& value = values_[token.value];
  if (token.local) {
    const Entry entry{token.value, next_fork(worker), std::nullopt};
    truth_[entry.fork] = Truth{connections_[connection].end[1 - side_of(worker, connection)],
                               session.peer.incarnation,
                               connection,
                               true,
                               false,
                               true,
                               std::nullopt,
                               -1};
    post_owner(worker, token.value, {.kind = Mail::Kind::handed_over, .fork = entry.fork, .session = session});
    return entry;
  }
  const auto at = workers_[worker].users.find(token.fork);
  if (at == workers_[worker].users.end()) return std::nullopt;
  const bool to_owner = session.peer.incarnation == value.owner_life;
  const UserFork& rules = at->second.rules;
  const bool bound = to_owner && without_ != Without::rr4_the_counting_session;
  if (!rules.may_use() || (bound && !may_pass_back(rules.owner(), session))) return std::nullopt;
  const Entry entry{token.value, next_fork(worker), token.fork};
  if (!to_owner) {
    truth_[entry.fork] = Truth{connections_[connection].end[1 - side_of(worker, connection)],
                               session.peer.incarnation,
                               -1,
                               false,
                               false,
                               false,
                               token.fork,
                               connection};
    post_user(worker, token.fork, {.kind = Mail::Kind::child_handed_over, .fork = entry.fork, .session = session});
  }
  return entry;
}

// RR-4: the lane did not take the frame.
void World::take_back(int worker, int connection, const Entry& entry) {
  if (without_ == Without::rr4_taking_back) return;
  const PeerSession session = seen(worker, connection);
  if (!entry.parent) {
    post_owner(worker, entry.value, {.kind = Mail::Kind::down, .fork = entry.fork, .session = session});
  } else if (session.peer.incarnation != values_[entry.value].owner_life) {
    post_user(worker, *entry.parent, {.kind = Mail::Kind::child_exited, .fork = entry.fork, .session = session});
  }
}

std::string World::add_arguments(int worker, int connection, std::uint32_t count, std::uint32_t choice, Frame& frame) {
  std::string text;
  const std::vector<Token>& tokens = workers_[worker].tokens;
  for (std::uint32_t i = 0; i < count && !tokens.empty(); ++i) {
    const Token& token = pick(tokens, choice + i);
    const std::optional<Entry> entry = hand_over(worker, connection, token);
    if (!entry) continue;
    frame.entries.push_back(*entry);
    text += " with " + token_name(token) + " as fork " + caftan::to_string(entry->fork);
  }
  return text;
}

void World::call(const Step& step) {
  const std::vector<int> up = alive();
  if (up.empty()) return;
  const int from = pick(up, step.a);
  const int to = static_cast<int>(step.b % workers_.size());
  const int connection = connection_between(from, to);
  if (connection < 0 || !open(from, connection)) return;
  Worker& self = workers_[from];
  Frame frame{.kind = Frame::Kind::call};
  std::string text = name(from) + " calls " + name(to);
  text += add_arguments(from, connection, step.c % 3, step.c / 3, frame);
  if ((step.c >> 8) % 12 == 0) {
    for (const Entry& entry : frame.entries) take_back(from, connection, entry);
    return say(text + ": not accepted by the lane");
  }
  const int id = ++calls_;
  frame.call = id;
  self.calls[id].connection = connection;
  say(text + " (call " + std::to_string(id) + ")");
  send(from, connection, std::move(frame));
}

void World::create(const Step& step) {
  const std::vector<int> up = alive();
  if (up.empty()) return;
  const int from = pick(up, step.a);
  const int to = static_cast<int>(step.b % workers_.size());
  const int connection = connection_between(from, to);
  if (from == to || connection < 0 || !open(from, connection)) return;
  Worker& self = workers_[from];
  const PeerSession session = seen(from, connection);
  const int number = static_cast<int>(values_.size());
  const RRefId rref{WorkerId{static_cast<std::uint32_t>(from)}, self.life, ++self.ids};
  const ForkId fork = next_fork(from);
  values_.push_back({rref, to, session.peer.incarnation, {session.connection, ++self.creations[connection]}, fork});
  const bool accepted = (step.c >> 8) % 12 != 0;
  truth_[fork] = Truth{from, self.life, accepted ? connection : -1, true, false, false, std::nullopt, -1};
  UserActor actor{.rules = UserFork::created(fork, session, name(to)), .value = number};
  // The refusal is known before user code sees the handle: otherwise user code could hand on a reference of which the
  // owner will never hear.
  if (!accepted) actor.rules.creation_answered(Error(Errc::overloaded, ""));
  if (!self.users.emplace(fork, std::move(actor)).second) return break_rule("RR-1: a fork id came twice");
  const int id = ++calls_;
  Call& outgoing = self.calls[id];
  outgoing.connection = connection;
  outgoing.value = number;
  outgoing.fork = fork;
  Frame frame{.kind = Frame::Kind::call, .value = number, .fork = fork, .call = id};
  const std::string arguments = add_arguments(from, connection, step.c % 2, step.c / 2, frame);
  self.tokens.push_back({number, false, fork, 1});
  say(name(from) + " creates " + token_name(self.tokens.back()) + " on " + name(to) + arguments + " (call " +
      std::to_string(id) + ")" + (accepted ? "" : ": not accepted by the lane"));
  if (accepted) {
    send(from, connection, std::move(frame));
  } else {
    for (const Entry& entry : frame.entries) take_back(from, connection, entry);
    self.calls.erase(id);
  }
}

void World::create_here(const Step& step) {
  const std::vector<int> up = alive();
  if (up.empty()) return;
  const int worker = pick(up, step.a);
  Worker& self = workers_[worker];
  const int number = static_cast<int>(values_.size());
  values_.push_back(
      {RRefId{WorkerId{static_cast<std::uint32_t>(worker)}, self.life, ++self.ids}, worker, self.life, {}, {}});
  OwnerActor& actor = self.owners[number];
  actor.rules.created_here();
  self.tokens.push_back({number, true, {}, 1});
  say(name(worker) + " makes " + token_name(self.tokens.back()));
  if (step.b % 2 == 0) {
    post_owner(worker, number, {.kind = Mail::Kind::creation_finished});
  } else {  // the value is made later by a function that runs at this worker
    Call& job = self.calls[++calls_];
    job.job = job.running = true;
    job.connection = connection_between(worker, worker);
    job.value = number;
  }
}

void World::use(const Step& step) {
  const std::vector<int> up = alive();
  if (up.empty()) return;
  const int worker = pick(up, step.a);
  Worker& self = workers_[worker];
  if (self.tokens.empty()) return;
  const Token& token = pick(self.tokens, step.b);
  look_at(worker, token);
  if (token.local) return;
  const Use used = step.c % 2 == 0 ? Use::fetch : Use::method;
  const std::string text =
      name(worker) + (used == Use::fetch ? " fetches " : " calls a method of ") + token_name(token);
  const auto user = self.users.find(token.fork);
  const int connection = connection_between(worker, values_[token.value].owner);
  const bool failed = user == self.users.end() || !user->second.rules.may_use();  // the handle knows
  if (failed || connection < 0 || !open(worker, connection)) return say(text + ": fails at once");
  const int id = ++calls_;
  Call& outgoing = self.calls[id];
  outgoing.use = true;
  outgoing.used = used;
  outgoing.connection = connection;
  outgoing.value = token.value;
  outgoing.fork = token.fork;
  say(text + " (call " + std::to_string(id) + ")");
  const Errc kind = used == Use::fetch ? Errc::ok : Errc::unsupported;
  send(worker, connection,
       {.kind = Frame::Kind::use, .value = token.value, .fork = token.fork, .call = id, .code = kind});
}

void World::finish(const Step& step) {
  std::vector<std::pair<int, int>> jobs;
  for (const int worker : alive()) {
    for (const auto& [id, call] : workers_[worker].calls) {
      if (call.job && call.running) jobs.emplace_back(worker, id);
    }
  }
  if (jobs.empty()) return;
  const auto [worker, id] = pick(jobs, step.a);
  finish_job(worker, id, step);
}

void World::finish_job(int worker, int id, const Step& step) {
  Worker& self = workers_[worker];
  Call job = std::move(self.calls[id]);
  self.calls.erase(id);
  std::string text = name(worker) + (job.peer_call < 0 ? " finishes " + name_of_value(job.value)
                                                       : " ends call " + std::to_string(job.peer_call));
  if (job.use && without_ != Without::rr8_running_methods) {
    post_owner(worker, job.value, {.kind = Mail::Kind::released, .used = job.used});
  } else if (!job.use && job.value >= 0) {
    post_owner(worker, job.value, {.kind = Mail::Kind::creation_finished});
  }
  if (job.peer_call >= 0 && open(worker, job.connection)) {
    Frame reply{.kind = Frame::Kind::reply, .call = job.peer_call};
    const bool creates = job.value >= 0 && !job.use;
    if (creates && (step.c >> 9) % 4 == 0) {
      reply.code = Errc::remote_exception;  // the function threw: the error is the value
    } else if (creates) {
      truth_.at(values_[job.value].creator).answered = true;
    }
    std::vector<Token>& source = step.c % 4 == 1 && !self.tokens.empty() ? self.tokens : job.tokens;
    if (step.c % 2 == 1 && !source.empty() && !job.use && reply.code == Errc::ok) {
      const Token& token = pick(source, step.b);
      if (const std::optional<Entry> entry = hand_over(worker, job.connection, token)) {
        reply.entries.push_back(*entry);
        text += " and answers " + token_name(token) + " as fork " + caftan::to_string(entry->fork);
      }
    }
    send(worker, job.connection, std::move(reply));
  }
  const bool keeps = (step.c >> 8) % 2 == 0;
  say(text + (job.tokens.empty() ? "" : keeps ? ", keeping what it got" : ", dropping what it got"));
  for (const Token& token : job.tokens) {
    if (keeps) {
      self.tokens.push_back(token);
    } else {
      drop(worker, token);
    }
  }
}

// Returns whether the fork has a handle at this worker: in user code, or in a call that was made through it.
bool World::holds(int worker, ForkId fork) const {
  const Worker& self = workers_[worker];
  const auto has = [&](const Token& token) { return !token.local && token.fork == fork; };
  const auto made_through = [&](const auto& entry) {
    return entry.second.use && entry.second.fork == fork && without_ != Without::rr7_handles_of_calls;
  };
  return std::any_of(self.tokens.begin(), self.tokens.end(), has) ||
         std::any_of(self.calls.begin(), self.calls.end(), made_through);
}

// Drops a handle. The last handle of a fork posts one message (RR-13).
void World::drop(int worker, const Token& token) {
  if (token.local) return post_owner(worker, token.value, {.kind = Mail::Kind::released, .used = Use::hold});
  if (without_ != Without::rr13_one_message && holds(worker, token.fork)) return;
  post_user(worker, token.fork, {.kind = Mail::Kind::handle_dropped});
}

void World::copy_or_drop(const Step& step, bool copy) {
  const std::vector<int> up = alive();
  if (up.empty()) return;
  const int worker = pick(up, step.a);
  std::vector<Token>& tokens = workers_[worker].tokens;
  if (tokens.empty()) return;
  Token& token = pick(tokens, step.b);
  look_at(worker, token);
  say(name(worker) + (copy ? " copies " : token.copies > 1 ? " drops one copy of " : " drops ") + token_name(token));
  if (copy) {
    ++token.copies;
  } else if (--token.copies > 0) {
    if (without_ == Without::rr13_one_message) drop(worker, token);
  } else {
    const Token last = token;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(step.b % tokens.size()));
    drop(worker, last);
  }
}

void World::give_up(const Step& step) {
  std::vector<std::pair<int, int>> waiting;
  for (const int worker : alive()) {
    for (const auto& [id, call] : workers_[worker].calls) {
      if (!call.job) waiting.emplace_back(worker, id);
    }
  }
  if (waiting.empty()) return;
  const auto [worker, id] = pick(waiting, step.a);
  say(name(worker) + " gives up call " + std::to_string(id));
  fail_call(worker, id, Errc::timeout);
}

void World::pass_deadline(const Step& step) {
  if (without_ == Without::rr11_deadline) return;
  std::vector<std::pair<int, int>> waiting;
  for (const int worker : alive()) {
    for (const auto& [id, call] : workers_[worker].calls) {
      if (call.unconfirmed > 0) waiting.emplace_back(worker, id);
    }
  }
  if (waiting.empty()) return;
  const auto [worker, id] = pick(waiting, step.a);
  say(name(worker) + ": the deadline of call " + std::to_string(id) + " passes, references unconfirmed");
  for (const Token& token : workers_[worker].calls[id].tokens) {
    if (!token.local) post_user(worker, token.fork, {.kind = Mail::Kind::deadline});
  }
}

}  // namespace caftan::rpc::model
