// The oracle: which workers can reach a value, from user code, frames and connections alone; and the judgement at rest.
#include <algorithm>

#include "rref_model_world.hpp"

namespace caftan::rpc::model {

std::string to_string(Without without) {
  switch (without) {
    case Without::nothing:
      return "nothing";
    case Without::rr1_incarnation_in_ids:
      return "RR-1 the incarnation in ids";
    case Without::rr2_one_order:
      return "RR-2 one order in the lane";
    case Without::rr3_manifest_first:
      return "RR-3 the manifest before a refusal";
    case Without::rr4_taking_back:
      return "RR-4 nothing registered when the lane refuses";
    case Without::rr4_manifest_is_the_watch:
      return "RR-4 the manifest entry is the watch";
    case Without::rr4_the_counting_session:
      return "RR-4 passed back only in the session that counts it";
    case Without::rr5_answer_before_accept:
      return "RR-5 accept only after the answer";
    case Without::rr5_accept:
      return "RR-5 accept";
    case Without::rr6_waiting_for_confirmation:
      return "RR-6 user code waits for confirmation";
    case Without::rr7_waiting_for_children:
      return "RR-7 a parent waits for its children";
    case Without::rr7_held_proxies:
      return "RR-7 the watcher holds the proxy";
    case Without::rr7_handles_of_calls:
      return "RR-7 a call holds a handle";
    case Without::rr8_unfinished_creation:
      return "RR-8 an unfinished creation counts";
    case Without::rr8_running_methods:
      return "RR-8 running methods count";
    case Without::rr8_answers_at_the_end:
      return "RR-8 the rest is answered";
    case Without::rr9_parking:
      return "RR-9 parking of early requests";
    case Without::rr9_end_of_parking:
      return "RR-9 the end of parking with the creator's session";
    case Without::rr10_owners_word:
      return "RR-10 the owner's answer decides";
    case Without::rr10_peer_down_for_good:
      return "RR-10 peer_down after the owner's loss";
    case Without::rr11_deadline:
      return "RR-11 the deadline of confirmation";
    case Without::rr12_drain_before_end:
      return "RR-12 drain before the end";
    case Without::rr13_one_message:
      return "RR-13 one message for the last copy";
    case Without::rr14_only_what_was_answered:
      return "RR-14 confirmed only by the owner's answer";
    case Without::watches:
      return "down and exit frames";
  }
  return "?";
}

void World::break_rule(const std::string& what) {
  if (!broken_.empty()) return;
  broken_ = what;
  say("==> " + what);
}

// Returns whether the owner really counts the fork: it is not killed, and was registered over a connection that still
// stands.
bool World::good(ForkId fork) const {
  const auto at = truth_.find(fork);
  if (at == truth_.end()) return false;
  const Truth& truth = at->second;
  const Worker& worker = workers_[truth.worker];
  return worker.alive && worker.life == truth.life && truth.confirmed && !truth.killed && truth.connection >= 0 &&
         !connections_[truth.connection].cut;
}

// Returns whether a reference in a frame, or one that was read and is not confirmed yet, can still be confirmed: its
// sender lives, and the connection still stands.
bool World::on_the_way(const Entry& entry, int sender, int connection) const {
  if (connections_[connection].cut || !workers_[sender].alive) return false;
  return entry.parent ? good(*entry.parent) : is_owner(sender, entry.value);
}

// Returns whether user code holds the handle, or will hold it if the call that brings it goes on.
bool World::in_sight(int worker, const Token& token) const {
  if (token.local) return is_owner(worker, token.value);
  if (good(token.fork)) return true;
  const auto at = truth_.find(token.fork);
  if (at == truth_.end() || !at->second.parent || at->second.confirmed || at->second.killed) return false;
  return good(*at->second.parent) && !connections_[at->second.parent_connection].cut;
}

// User code asks its handle whether the owner has confirmed it.
void World::look_at(int worker, const Token& token) {
  if (token.local) return;
  const auto at = workers_[worker].users.find(token.fork);
  if (at == workers_[worker].users.end()) return;
  const UserFork& rules = at->second.rules;
  const bool says_so = rules.is_confirmed() ||
                       (without_ == Without::rr14_only_what_was_answered && rules.state() == UserFork::State::creating);
  if (says_so && !truth_.at(token.fork).answered) {
    break_rule("RR-14: the handle of fork " + caftan::to_string(token.fork) +
               " says that it is confirmed before the owner has answered");
  }
}

bool World::reachable(int value) const {
  const Value& what = values_[value];
  if (!workers_[what.owner].alive || workers_[what.owner].life != what.owner_life) return false;
  for (const int worker : alive()) {
    const Worker& self = workers_[worker];
    const auto holds = [&](const Token& token) { return token.value == value && in_sight(worker, token); };
    if (std::any_of(self.tokens.begin(), self.tokens.end(), holds)) return true;
    for (const auto& [id, call] : self.calls) {
      if (std::any_of(call.tokens.begin(), call.tokens.end(), holds)) return true;
      const bool works_on_it = call.value == value && (call.job || (call.use && good(call.fork)));
      if (works_on_it) return true;
    }
  }
  const auto carries = [&](const Frame& frame, int sender, int connection) {
    return std::any_of(frame.entries.begin(), frame.entries.end(), [&](const Entry& entry) {
      return entry.value == value && on_the_way(entry, sender, connection);
    });
  };
  if (reading_.frame && carries(*reading_.frame, reading_.sender, reading_.connection)) return true;
  for (std::size_t number = 0; number < connections_.size(); ++number) {
    const Connection& connection = connections_[number];
    for (int side = 0; side < 2; ++side) {
      for (const Frame& frame : connection.lane[side]) {
        if (carries(frame, connection.end[side], static_cast<int>(number))) return true;
      }
    }
  }
  return false;
}

void World::check_refusal(int value, const std::string& where) {
  if (reachable(value)) {
    break_rule("safety: " + where + " got the message that v" + std::to_string(value) +
               " has ended while it could be reached");
  }
}

// Delivers and runs everything that can move without a deadline.
void World::come_to_rest() {
  for (bool moved = true; moved && broken_.empty();) {
    run_all();
    moved = false;
    for (std::size_t number = 0; number < connections_.size() && broken_.empty(); ++number) {
      for (int side = 0; side < 2; ++side) {
        const int reader = connections_[number].end[1 - side];
        const bool listens = workers_[reader].alive && workers_[reader].life == connections_[number].life[1 - side];
        if (!listens || connections_[number].declared[1 - side]) continue;
        if (!connections_[number].lane[side].empty()) {
          read(static_cast<int>(number), side, false);
          moved = true;
        } else if (connections_[number].cut && !connections_[number].loopback()) {
          end_session(reader, static_cast<int>(number));
          moved = true;
        }
      }
    }
  }
}

// Until nothing is left: comes to rest, lets the deadlines of references that cannot be confirmed pass, and ends all
// running functions.
void World::settle() {
  for (bool moved = true; moved && broken_.empty();) {
    come_to_rest();
    check_answered();
    moved = false;
    for (const int worker : alive()) {
      std::vector<int> running;
      for (const auto& [id, call] : workers_[worker].calls) {
        if (call.job && call.running) running.push_back(id);
      }
      for (const int id : running) finish_job(worker, id, Step{Act::finish, 0, 0, 0});
      moved = moved || !running.empty();
      std::vector<std::pair<int, ForkId>> late;
      for (const auto& [fork, actor] : workers_[worker].users) {
        if (actor.rules.state() == UserFork::State::awaiting) late.emplace_back(worker, fork);
      }
      if (without_ == Without::rr11_deadline) continue;
      for (const auto& [at, fork] : late) post_user(at, fork, {.kind = Mail::Kind::deadline});
      moved = moved || !late.empty();
    }
  }
}

// At rest, a fork may still wait for a reply only if it has no session with its owner.
void World::check_answered() {
  for (const int worker : alive()) {
    for (const auto& [fork, actor] : workers_[worker].users) {
      if (actor.rules.state() == UserFork::State::awaiting && !actor.unsent) {
        break_rule("liveness: the request of fork " + caftan::to_string(fork) + " was never answered");
      }
    }
  }
}

// Every handle that reports no error has a live value that counts it.
void World::check_at_rest() {
  for (const int worker : alive()) {
    for (const Token& token : workers_[worker].tokens) {
      const Value& value = values_[token.value];
      const Worker& owner = workers_[value.owner];
      const bool lives = owner.alive && owner.life == value.owner_life && owner.owners.count(token.value) != 0;
      const std::string what = "v" + std::to_string(token.value) + " on w" + std::to_string(worker);
      if (token.local) {
        if (!lives) break_rule("safety: a hold of " + what + " has no value");
        continue;
      }
      const auto user = workers_[worker].users.find(token.fork);
      if (user == workers_[worker].users.end()) {
        if (!truth_.at(token.fork).killed) break_rule("safety: a handle of " + what + " has no actor");
        continue;
      }
      if (const Result<void> usable = user->second.rules.may_use(); !usable) {
        // The handle that created the value fails with the callee's error if the creation was refused; that error may
        // have any code.
        const bool creator = token.fork == value.creator;
        const bool blames_the_owner = usable.error().code() == Errc::peer_down && !creator;
        if (blames_the_owner && good(token.fork)) break_rule("RR-10: a handle of " + what + " fails for no reason");
        continue;
      }
      const std::vector<ForkTable::Fork> forks =
          lives ? owner.owners.at(token.value).rules.forks() : std::vector<ForkTable::Fork>{};
      const bool counted =
          std::any_of(forks.begin(), forks.end(), [&](const ForkTable::Fork& fork) { return fork.id == token.fork; });
      if (!counted) break_rule("safety: a handle of " + what + " reports no error, but the owner does not count it");
    }
  }
}

void World::drop_everything() {
  say("user code drops everything");
  for (const int worker : alive()) {
    for (const Token& token : std::exchange(workers_[worker].tokens, {})) drop(worker, token);
  }
}

void World::check_empty() {
  for (const int number : alive()) {
    const Worker& worker = workers_[number];
    const std::string where = " on w" + std::to_string(number);
    if (!worker.users.empty()) {
      break_rule("liveness: fork " + caftan::to_string(worker.users.begin()->first) + " never ends" + where);
    }
    if (!worker.owners.empty()) {
      break_rule("liveness: v" + std::to_string(worker.owners.begin()->first) + " never ends" + where);
    }
    if (worker.ledger.parked_count() != 0) break_rule("liveness: a request stays parked" + where);
    if (!worker.calls.empty()) {
      break_rule("liveness: call " + std::to_string(worker.calls.begin()->first) + " is never answered" + where);
    }
  }
}

std::string World::run(const History& history) {
  prompt_ = history.prompt;
  if (!prompt_) say("mailboxes are read late");
  workers_.resize(static_cast<std::size_t>(history.workers));
  for (int worker = 0; worker < history.workers; ++worker) start_worker(worker);
  for (int first = 0; first < history.workers; ++first) {
    for (int second = first + 1; second < history.workers; ++second) connect(first, second);
  }
  for (const Step& each : history.steps) {
    step(each);
    if (prompt_) run_all();
    if (!broken_.empty()) return broken_;
  }
  settle();
  if (broken_.empty()) check_at_rest();
  if (broken_.empty()) drop_everything();
  if (broken_.empty()) settle();
  if (broken_.empty()) check_empty();
  return broken_;
}

}  // namespace caftan::rpc::model
