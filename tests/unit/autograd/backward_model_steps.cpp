// The steps of a history: what user code does, and which faults happen.
#include <algorithm>

#include "backward_model_world.hpp"

namespace caftan::autograd::model {
namespace {

constexpr std::size_t kMostContexts = 3;

}  // namespace

std::string World::run(const History& history) {
  calm_ = history.calm;
  workers_.resize(static_cast<std::size_t>(history.workers));
  for (int worker = 0; worker < history.workers; ++worker) {
    start_worker(worker);
    for (int other = 0; other < worker; ++other) {
      sessions_.push_back({{other, worker}, {workers_[other].life, workers_[worker].life}});
    }
  }
  for (const Step& choice : history.steps) {
    step(choice);
    dropped_.clear();
    if (!broken_.empty()) return broken_;
  }
  come_to_rest();
  check_at_rest();
  for (std::size_t context = 0; context < contexts_.size() && broken_.empty(); ++context) {
    Worker& home = workers_[contexts_[context].home];
    const auto at = home.parts.find(static_cast<int>(context));
    if (at == home.parts.end() || at->second->released || !at->second->passes->is_home()) continue;
    Part& part = *at->second;
    release(static_cast<int>(context));
    while (part.uses > 0) end_use(part);
  }
  come_to_rest();
  check_empty();
  return broken_;
}

void World::step(const Step& choice) {
  switch (choice.act) {
    case Act::create:
      return create(choice);
    case Act::call:
      return call(choice);
    case Act::backward:
      return backward(choice);
    case Act::deliver:
      deliver(choice.a);
      return;
    case Act::work:
      work(choice.a);
      return;
    case Act::use:
      return use(choice);
    case Act::release:
      if (!contexts_.empty() && choice.b % 4 == 0) release(static_cast<int>(choice.a % contexts_.size()));
      return;
    case Act::throw_in_node:
      return throw_in_node(choice);
    case Act::give_up:
      return give_up(choice);
    case Act::forge:
      return forge(choice);
    case Act::cut:
      return cut_one(choice);
    case Act::crash:
      return crash(choice);
    case Act::restart:
      return restart(choice);
    case Act::reconnect:
      return reconnect(choice);
  }
}

void World::start_worker(int worker) {
  workers_[worker] = Worker{};
  workers_[worker].life = {{static_cast<std::uint32_t>(worker)}, {++lives_}};
  workers_[worker].table = ContextTable(workers_[worker].life);
}

std::vector<int> World::alive() const {
  std::vector<int> all;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker].alive) all.push_back(static_cast<int>(worker));
  }
  return all;
}

std::vector<World::Part*> World::parts() const {
  std::vector<Part*> all;
  for (const Worker& worker : workers_) {
    for (const auto& [context, part] : worker.parts) all.push_back(part.get());
  }
  return all;
}

// Returns the messages that a worker has received in one context, or in all contexts if `context` is -1.
std::vector<int> World::received(int worker, int context) const {
  std::vector<int> all;
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    const Recorded& message = recorded_[i];
    if (message.arrived && message.receiver_life == workers_[worker].life &&
        (context < 0 || message.context == context)) {
      all.push_back(static_cast<int>(i));
    }
  }
  return all;
}

void World::create(const Step& step) {
  const std::vector<int> workers = alive();
  if (workers.empty() || contexts_.size() >= kMostContexts) return;
  const int home = workers[step.a % workers.size()];
  const int context = static_cast<int>(contexts_.size());
  contexts_.push_back({workers_[home].table.create(), home});
  context_by_id_[contexts_.back().id] = context;
  make_part(home, context);
  say("w" + std::to_string(home) + " makes context c" + std::to_string(context));
}

void World::call(const Step& step) {
  std::vector<Part*> callers;
  for (Part* part : parts()) {
    if (!part->released) callers.push_back(part);
  }
  const std::vector<int> workers = alive();
  if (callers.empty()) return;
  Part& part = *callers[step.a % callers.size()];
  const int receiver = workers[step.c % workers.size()];
  const Worker& self = workers_[part.worker];
  const int session = receiver == part.worker ? -1 : session_of(part.worker, workers_[receiver].life);
  if (receiver != part.worker && session < 0) return;  // DA-2: a message that is not handed over is not recorded
  Recorded message{{self.life.id, self.life.incarnation, ++workers_[part.worker].messages},
                   part.context,
                   part.worker,
                   receiver,
                   workers_[receiver].life,
                   {}};
  const std::vector<int> nodes = received(part.worker, step.c % 41 == 0 ? -1 : part.context);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if ((step.b >> (i % 20) & 1) != 0) message.reaches.insert(nodes[i]);
  }
  const int number = static_cast<int>(recorded_.size());
  by_id_[message.id] = number;
  recorded_.push_back(message);
  Context& context = contexts_[part.context];
  for (auto& [pass, truth] : context.passes) {
    if (!context.truth.contains(pass)) truth.disturbed = true;
  }
  say("w" + std::to_string(part.worker) + " sends message m" + std::to_string(number) + " of c" +
      std::to_string(part.context) + " to w" + std::to_string(receiver));
  if (session >= 0 && sessions_[session].cut) return;
  Flight flight;
  flight.kind = Flight::Kind::forward;
  flight.from = part.worker;
  flight.to = receiver;
  flight.session = session;
  flight.context = part.context;
  flight.life = self.life;
  flight.recorded = number;
  flight.decided = part.passes->decided();
  flights_.push_back(std::move(flight));
}

void World::backward(const Step& step) {
  const std::vector<Part*> all = parts();
  if (all.empty()) return;
  Part& part = *all[step.a % all.size()];
  if (part.released) return;
  OpenPass options;
  options.mode = step.c % 4 == 0 ? Mode::fast : Mode::smart;
  options.keep = step.c / 4 % 2 == 0;
  std::set<int> roots;
  const std::vector<int> nodes = received(part.worker, step.c / 8 % 23 == 0 ? -1 : part.context);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if ((step.b >> (i % 20) & 1) != 0) roots.insert(nodes[i]);
  }
  Result<PassActions> begun = part.passes->open(options);
  if (!begun) {
    const Errc code = begun.error().code();
    const bool fits = code == Errc::pass_busy ? part.opened : code == Errc::context_released;
    if (!fits) break_rule("backward is refused with " + std::string(to_string(code)));
    return;
  }
  if (part.opened) break_rule("DA-1: " + name(part) + " has two passes open");
  say(name(part) + " runs backward");
  part.opened = true;
  part.next_roots = std::move(roots);
  perform(part.worker, part.context, *std::move(begun));
}

void World::use(const Step& step) {
  if (contexts_.empty()) return;
  const int context = static_cast<int>(step.a % contexts_.size());
  auto& parts = workers_[contexts_[context].home].parts;
  const auto at = parts.find(context);
  if (at == parts.end() || at->second->released || !at->second->passes->is_home()) return;
  Part& part = *at->second;
  if (step.b % 2 == 0 && !contexts_[context].release_asked) {
    ++part.uses;
  } else if (part.uses > 0) {
    end_use(part);
  }
}

// As ContextRecord: the last use lets a release go on that was asked for meanwhile.
void World::end_use(Part& part) {
  --part.uses;
  if (part.uses > 0 || !contexts_[part.context].release_asked || without_ == Without::da19_release_waits) return;
  perform(part.worker, part.context, part.passes->release());
}

void World::release(int context) {
  Context& of = contexts_[context];
  auto& parts = workers_[of.home].parts;
  const auto at = parts.find(context);
  if (at == parts.end() || at->second->released || !at->second->passes->is_home() || of.release_asked) return;
  say("c" + std::to_string(context) + " goes out of scope");
  of.release_asked = true;
  if (at->second->uses > 0 && without_ != Without::da19_release_waits) return;
  perform(of.home, context, at->second->passes->release());
}

void World::throw_in_node(const Step& step) {
  std::vector<Part*> running;
  for (Part* part : parts()) {
    if (part->job && part->job->is_run) running.push_back(part);
  }
  if (running.empty()) return;
  Part& part = *running[step.a % running.size()];
  say("a node throws at " + name(part));
  part.job->failure = Errc::remote_exception;
}

void World::give_up(const Step& step) {
  std::vector<Part*> waiting;
  for (Part* part : parts()) {
    if (part->opened) waiting.push_back(part);
  }
  if (waiting.empty()) return;
  Part& part = *waiting[step.a % waiting.size()];
  say(name(part) + " gives up its pass");
  perform(part.worker, part.context, part.passes->abort(Error(Errc::timeout, "")));
}

// Sends a worker a mark or gradient for one of its messages, from a worker that is not the receiver of that message.
void World::forge(const Step& step) {
  const std::vector<int> workers = alive();
  if (recorded_.empty() || workers.size() < 2) return;
  const Recorded& message = recorded_[step.a % recorded_.size()];
  const int from = workers[step.b % workers.size()];
  if (from == message.sender || !workers_[message.sender].alive) return;
  const auto at = workers_[message.sender].parts.find(message.context);
  if (at == workers_[message.sender].parts.end() || !at->second->passes->pass()) return;
  const PassHeader header = at->second->passes->pass()->header();
  if (message.receiver == from) return;  // a message that the true receiver could send is not forged
  const WorkerLife to = workers_[message.sender].life;
  if (session_of(from, to) < 0) return;
  say("w" + std::to_string(from) + " forges");
  if (step.c % 2 == 0) {
    send(from, message.context, to, Grad{header, message.id});
  } else {
    send(from, message.context, to, Mark{header, {message.id}});
  }
}

// Cuts a session; messages that were received completely before the loss still arrive.
void World::cut(int session, std::uint32_t kept) {
  Session& lost = sessions_[session];
  if (lost.cut) return;
  lost.cut = true;
  std::size_t at = 0;
  std::erase_if(flights_,
                [&](const Flight& flight) { return flight.session == session && (kept >> (at++ % 20) & 1) == 0; });
  say("w" + std::to_string(lost.end[0]) + " and w" + std::to_string(lost.end[1]) + " lose their connection");
}

void World::cut_one(const Step& step) {
  std::vector<int> open;
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (!sessions_[i].cut) open.push_back(static_cast<int>(i));
  }
  if (!open.empty()) cut(open[step.a % open.size()], step.b);
}

void World::crash(const Step& step) {
  const std::vector<int> workers = alive();
  if (workers.empty()) return;
  const int worker = workers[step.a % workers.size()];
  say("w" + std::to_string(worker) + " crashes");
  const WorkerLife life = workers_[worker].life;
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    Session& session = sessions_[i];
    for (int side = 0; side < 2; ++side) {
      if (session.life[side] != life) continue;
      cut(static_cast<int>(i), step.b >> (i % 8));
      session.declared[side] = true;
    }
  }
  std::erase_if(flights_, [&](const Flight& flight) { return flight.to == worker; });
  for (auto& [context, part] : workers_[worker].parts) dropped_.push_back(std::move(part));
  workers_[worker] = Worker{};
  workers_[worker].alive = false;
}

void World::restart(const Step& step) {
  std::vector<int> dead;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (!workers_[worker].alive) dead.push_back(static_cast<int>(worker));
  }
  if (dead.empty()) return;
  start_worker(dead[step.a % dead.size()]);
  say("w" + std::to_string(dead[step.a % dead.size()]) + " starts again");
}

// Connects two workers anew, but only after both know of the end of their last session and of every message that found
// no session.
void World::reconnect(const Step& step) {
  std::vector<std::pair<int, int>> apart;
  const std::vector<int> workers = alive();
  for (const int first : workers) {
    for (const int second : workers) {
      if (first >= second) continue;
      bool free = true;
      for (const Session& session : sessions_) {
        if (session.end[0] != first || session.end[1] != second) continue;
        for (int side = 0; side < 2; ++side) {
          const Worker& worker = workers_[session.end[side]];
          if (worker.life == session.life[side] && !session.declared[side]) free = false;
        }
      }
      for (const Flight& flight : flights_) {
        if (flight.kind != Flight::Kind::lost) continue;
        const int peer = static_cast<int>(flight.life.id.value);
        if ((flight.to == first && peer == second) || (flight.to == second && peer == first)) free = false;
      }
      if (free) apart.emplace_back(first, second);
    }
  }
  if (apart.empty()) return;
  const auto [first, second] = apart[step.a % apart.size()];
  sessions_.push_back({{first, second}, {workers_[first].life, workers_[second].life}});
  say("w" + std::to_string(first) + " and w" + std::to_string(second) + " connect");
}

}  // namespace caftan::autograd::model
