// Sessions, messages that arrive in any order, and the model's context actor, which carries out the actions of
// ContextPasses.
#include <algorithm>
#include <variant>

#include "backward_model_world.hpp"

namespace caftan::autograd::model {
namespace {

// The header of the messages that bring a worker into a pass.
PassHeader* header_of(PassMessage& message) {
  if (auto* mark = std::get_if<Mark>(&message)) return &mark->header;
  if (auto* grad = std::get_if<Grad>(&message)) return &grad->header;
  return nullptr;
}

bool is_about_a_part(const PassMessage& message) {
  return std::holds_alternative<Report>(message) || std::holds_alternative<Done>(message) ||
         std::holds_alternative<Fail>(message);
}

}  // namespace

std::optional<WorkerLife> World::Part::receiver_of(AutogradMessageId message) const {
  const auto at = world.by_id_.find(message);
  if (at == world.by_id_.end()) return std::nullopt;
  const Recorded& recorded = world.recorded_[at->second];
  if (recorded.context != context || message.maker() != world.workers_[worker].life) return std::nullopt;
  return recorded.receiver_life;
}

std::vector<AutogradMessageId> World::Part::sends() const {
  std::vector<AutogradMessageId> all;
  for (const Recorded& recorded : world.recorded_) {
    if (recorded.context == context && recorded.id.maker() == world.workers_[worker].life) all.push_back(recorded.id);
  }
  return all;
}

World::Part& World::make_part(int worker, int context) {
  auto part = std::make_unique<Part>(*this, worker, context);
  part->passes = std::make_unique<ContextPasses>(contexts_[context].id, workers_[worker].life, *part);
  Part& made = *part;
  workers_[worker].parts[context] = std::move(part);
  return made;
}

void World::drop_part(int worker, int context) {
  auto& parts = workers_[worker].parts;
  if (parts.at(context)->job) break_rule("the nodes of " + name(*parts.at(context)) + " are dropped while they run");
  dropped_.push_back(std::move(parts.at(context)));
  parts.erase(context);
}

void World::perform(int worker, int context, PassActions actions) {
  watch_home(context);
  for (PassAction& action : actions) {
    const auto at = workers_[worker].parts.find(context);
    if (at == workers_[worker].parts.end()) return break_rule("actions after the end of a context");
    Part& part = *at->second;
    if (auto* out = std::get_if<Send>(&action)) {
      const auto* decide = std::get_if<Decide>(&out->message);
      if (decide && decide->outcome && without_ == Without::da10_commit_at_the_home) {
        // Rule removed: the initiator announces the outcome to all workers before the home has written it down.
        DecidedSet decided = contexts_[context].truth;
        decided.decide_next(true);
        for (const Recorded& message : recorded_) {
          const WorkerLife to = message.id.maker();
          if (message.context == context && to != workers_[worker].life) {
            send(worker, context, to, End{decide->pass, {}, decided});
          }
        }
      }
      if (std::holds_alternative<Done>(out->message) && part.graph) {
        if (without_ == Without::da7_state_after_the_answer) part.graph->staged.clear();
        if (without_ == Without::da8_merge_after_the_decision) {
          part.book[part.graph->pass].swap(part.graph->staged);
        }
      }
      send(worker, context, out->to, std::move(out->message));
    } else if (const auto* watch = std::get_if<WatchWorker>(&action)) {
      watch_worker(worker, watch->worker);
    } else if (const auto* begin = std::get_if<BeginPass>(&action)) {
      begin_pass(part, *begin);
    } else if (const auto* walk = std::get_if<WalkGraph>(&action)) {
      begin_walk(part, *walk);
    } else if (const auto* run = std::get_if<RunGraph>(&action)) {
      begin_run(part, *run);
    } else if (std::holds_alternative<StopGraph>(action)) {
      if (!part.job) break_rule("nothing runs at " + name(part) + " that could be stopped");
      if (part.job) part.job->stopped = true;
    } else if (const auto* merge = std::get_if<MergeGradients>(&action)) {
      settle(part, merge->pass, true);
    } else if (const auto* drop = std::get_if<DropGradients>(&action)) {
      settle(part, drop->pass, false);
    } else if (const auto* ended = std::get_if<PassEnded>(&action)) {
      pass_ended(part, *ended);
    } else if (const auto* released = std::get_if<ContextReleased>(&action)) {
      end_context(worker, context, part, *released);
    } else {
      drop_part(worker, context);
    }
    if (!broken_.empty()) return;
  }
}

void World::end_context(int worker, int context, Part& part, const ContextReleased& released) {
  say(name(part) + " is released");
  part.released = true;
  if (part.passes->is_home() && (part.uses > 0 || part.opened)) {
    break_rule("DA-19: " + name(part) + " is released while its handle's own work is under way");
  }
  workers_[worker].released.insert(context);
  workers_[worker].table.released(contexts_[context].id);
  for (const WorkerLife to : released.tell) {
    send(worker, context, to,
         Release{contexts_[context].id, workers_[worker].table.released_around(contexts_[context].id)});
  }
}

// A worker that watches an unreachable peer, or sends to one, gets a report of the peer's loss.
void World::watch_worker(int worker, WorkerLife peer) {
  if (session_of(worker, peer) >= 0 || without_ == Without::da10_watching_the_unreachable) return;
  Flight flight;
  flight.kind = Flight::Kind::lost;
  flight.from = flight.to = worker;
  flight.life = peer;
  flights_.push_back(std::move(flight));
}

int World::session_of(int worker, WorkerLife peer) const {
  for (std::size_t i = sessions_.size(); i-- > 0;) {
    const Session& session = sessions_[i];
    for (int side = 0; side < 2; ++side) {
      if (session.life[side] == workers_[worker].life && session.life[1 - side] == peer && !session.declared[side]) {
        return static_cast<int>(i);
      }
    }
  }
  return -1;
}

void World::send(int worker, int context, WorkerLife to, PassMessage message) {
  if (without_ == Without::da10_fail && std::holds_alternative<Fail>(message)) return;
  if (without_ == Without::da7_question_to_the_home && std::holds_alternative<Fail>(message) &&
      to == contexts_[context].id.maker()) {
    return;
  }
  if (auto* report = std::get_if<Report>(&message)) {
    if (without_ == Without::da4_closing_before_running) report->spawned.clear();
    if (without_ == Without::da4_report_after_the_walk && report->done.size() > 0 && report->done[0]) {
      report->done.clear();  // with that rule removed, this was reported when the marks came
    }
  }
  const auto* refused = std::get_if<Refused>(&message);
  if (refused && without_ == Without::da1_one_open_pass && refused->error.code() == Errc::pass_busy) {
    const DecidedSet& decided = contexts_[context].truth;
    message = Granted{{contexts_[context].id, {decided.up_to().value + 1}}, decided};
  }
  if (const auto* granted = std::get_if<Granted>(&message)) check_grant(context, granted->pass.number);
  say("w" + std::to_string(worker) + " -> w" + std::to_string(to.id.value) + " " + to_string(message));
  Flight flight;
  flight.from = worker;
  flight.to = static_cast<int>(to.id.value);
  flight.context = context;
  flight.life = workers_[worker].life;
  flight.message = std::move(message);
  if (to != workers_[worker].life) {
    flight.session = session_of(worker, to);
    if (flight.session < 0) return watch_worker(worker, to);
    if (sessions_[flight.session].cut) return;
  } else if (!std::holds_alternative<Grad>(flight.message)) {
    return break_rule("a message to itself leaves w" + std::to_string(worker));
  }
  flights_.push_back(std::move(flight));
}

bool World::deliver(std::uint32_t choice) {
  std::vector<std::pair<int, int>> losses;  // session, side
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    const Session& session = sessions_[i];
    for (int side = 0; side < 2 && session.cut; ++side) {
      if (session.declared[side]) continue;
      const bool drained = std::none_of(flights_.begin(), flights_.end(), [&](const Flight& flight) {
        return flight.session == static_cast<int>(i) && flight.to == session.end[side];
      });
      if (drained) losses.emplace_back(static_cast<int>(i), side);
    }
  }
  const std::size_t count = flights_.size() + losses.size();
  if (count == 0) return false;
  const std::size_t at = choice % count;
  if (at >= flights_.size()) {
    const auto [number, side] = losses[at - flights_.size()];
    Session& session = sessions_[number];
    session.declared[side] = true;
    lose(session.end[side], session.life[1 - side]);
    return true;
  }
  const Flight flight = std::move(flights_[at]);
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(at));
  switch (flight.kind) {
    case Flight::Kind::pass:
      deliver_pass(flight);
      break;
    case Flight::Kind::forward:
      deliver_forward(flight);
      break;
    case Flight::Kind::lost:
      lose(flight.to, flight.life);
      break;
  }
  return true;
}

void World::lose(int worker, WorkerLife peer) {
  say("w" + std::to_string(worker) + " hears that w" + std::to_string(peer.id.value) + " is lost");
  Worker& self = workers_[worker];
  self.table.peer_down(peer);
  std::vector<int> contexts;
  for (const auto& [context, part] : self.parts) contexts.push_back(context);
  for (const int context : contexts) {
    if (without_ == Without::da10_watching && contexts_[context].id.maker() != peer) continue;
    const auto at = self.parts.find(context);
    if (at != self.parts.end()) perform(worker, context, at->second->passes->peer_down(peer));
  }
}

void World::deliver_forward(const Flight& flight) {
  Worker& self = workers_[flight.to];
  Recorded& message = recorded_[flight.recorded];
  Result<bool> entered = self.table.enter(contexts_[flight.context].id);
  if (!entered && without_ == Without::da13_refusal_of_released && self.parts.count(flight.context) == 0) {
    entered = true;
  }
  if (!entered) {
    say("w" + std::to_string(flight.to) + " refuses m" + std::to_string(flight.recorded));
    return;
  }
  if (self.released.count(flight.context) != 0) {
    return break_rule("DA-13: w" + std::to_string(flight.to) + " revives the released c" +
                      std::to_string(flight.context));
  }
  if (*entered) {
    Part& part = make_part(flight.to, flight.context);
    perform(flight.to, flight.context, part.passes->join());
  }
  message.arrived = true;
  say("w" + std::to_string(flight.to) + " receives m" + std::to_string(flight.recorded));
  perform(flight.to, flight.context, self.parts.at(flight.context)->passes->learn(flight.decided));
}

void World::deliver_pass(const Flight& flight) {
  Worker& self = workers_[flight.to];
  PassMessage message = flight.message;
  WorkerLife from = flight.life;
  if (const auto* release = std::get_if<Release>(&message)) {
    if (self.table.learn(from, release->released)) return break_rule("DA-13: a question about fewer contexts than 16");
  }
  const auto at = self.parts.find(flight.context);
  if (at == self.parts.end() || at->second->released) {
    const std::optional<Send> answer = self.table.refuse(from, message);
    if (!answer) return;
    if (without_ == Without::da13_release_after_a_late_join && std::holds_alternative<Join>(message)) return;
    send(flight.to, flight.context, answer->to, answer->message);
    return;
  }
  Part& part = *at->second;
  say(name(part) + " receives " + to_string(message));
  PassHeader* header = header_of(message);
  const WorkerPass* open = part.passes->pass();
  bool is_of_another = header && open && open->number() > header->pass.number;
  if (header && open && without_ == Without::da9_pass_numbers) *header = open->header();
  if (header && without_ == Without::da16_peer_of_the_message) {
    const auto* grad = std::get_if<Grad>(&message);
    const auto known = grad ? part.receiver_of(grad->message) : std::nullopt;
    if (known) from = *known;
  }
  if (without_ == Without::da4_report_after_the_walk && std::holds_alternative<Mark>(message)) {
    const Mark& mark = std::get<Mark>(message);
    if (mark.header.initiator != self.life) {
      send(flight.to, flight.context, mark.header.initiator,
           Report{mark.header.pass, {AutogradMessageId{}}, {}, {}, false});
      std::get<Report>(flights_.back().message).done = mark.messages;
    }
  }
  const auto state = [&] {
    const WorkerPass* pass = part.passes->pass();
    return pass ? std::tuple(pass->number().value, pass->phase(), pass->messages().size(), pass->is_active())
                : std::tuple(std::uint64_t{0}, WorkerPass::Phase::marking, std::size_t{0}, false);
  };
  const auto before = state();
  PassActions actions = part.passes->receive(from, message, 1);
  if (is_of_another && without_ != Without::da9_pass_numbers && state() != before) {
    break_rule("DA-9: a message of another pass changes the open one at " + name(part));
  }
  if (without_ == Without::da10_end_to_late_speakers && is_about_a_part(message)) {
    std::erase_if(actions, [&](const PassAction& action) {
      const Send* out = std::get_if<Send>(&action);
      return out && out->to == from && std::holds_alternative<End>(out->message) &&
             !std::holds_alternative<Fail>(message);
    });
  }
  perform(flight.to, flight.context, std::move(actions));
}

}  // namespace caftan::autograd::model
