// The model's oracle: what must hold, judged from the recorded graph, the homes' decisions and the faults alone.
#include <algorithm>
#include <deque>

#include "backward_model_world.hpp"

namespace caftan::autograd::model {
namespace {

constexpr int kLongestRest = 20'000;

}  // namespace

std::string to_string(Without without) {
  switch (without) {
    case Without::nothing:
      return "nothing";
    case Without::da1_one_open_pass:
      return "DA-1 one open pass";
    case Without::da3_refusal_of_foreign_nodes:
      return "DA-3 the refusal of foreign nodes";
    case Without::da4_closing_before_running:
      return "DA-4 closing before running";
    case Without::da4_report_after_the_walk:
      return "DA-4 the report after the walk";
    case Without::da5_one_visited_set:
      return "DA-5 one visited set";
    case Without::da5_fresh_counts:
      return "DA-5 fresh counts, all old marks forgotten";
    case Without::da6_undefined_gradients:
      return "DA-6 messages for undefined gradients";
    case Without::da6_one_feed_each:
      return "DA-6 counting a gradient once";
    case Without::da7_state_after_the_answer:
      return "DA-7 state after the answer";
    case Without::da7_question_to_the_home:
      return "DA-7 the question to the home";
    case Without::da8_drop_on_failure:
      return "DA-8 dropping on failure";
    case Without::da8_merge_after_the_decision:
      return "DA-8 merging after the decision";
    case Without::da9_pass_numbers:
      return "DA-9 pass numbers";
    case Without::da10_fail:
      return "DA-10 Fail";
    case Without::da10_watching:
      return "DA-10 watching peers";
    case Without::da10_watching_the_unreachable:
      return "DA-10 watching workers out of reach";
    case Without::da10_end_to_late_speakers:
      return "DA-10 End for late speakers";
    case Without::da10_commit_at_the_home:
      return "DA-10 the commit at the home";
    case Without::da13_refusal_of_released:
      return "DA-13 the refusal of released contexts";
    case Without::da13_release_after_a_late_join:
      return "DA-13 the Release after a late Join";
    case Without::da16_peer_of_the_message:
      return "DA-16 the peer of the message";
    case Without::da19_release_waits:
      return "DA-19 the release waits";
  }
  return "?";
}

std::string World::name(const Part& part) {
  return "w" + std::to_string(part.worker) + "/c" + std::to_string(part.context);
}

void World::break_rule(const std::string& what) {
  if (!broken_.empty()) return;
  broken_ = what;
  say("==> " + what);
}

// Copies the outcomes that the home has decided, so that the oracle has them when the home is gone.
void World::watch_home(int context) {
  Context& of = contexts_[context];
  const auto at = workers_[of.home].parts.find(context);
  if (at == workers_[of.home].parts.end() || !at->second->passes->is_home()) return;
  const DecidedSet& now = at->second->passes->decided();
  const bool is_longer = now.up_to() >= of.truth.up_to();
  for (std::uint64_t pass = 1; is_longer && pass <= of.truth.up_to().value; ++pass) {
    if (now.is_ok({pass}) != of.truth.is_ok({pass})) return break_rule("DA-10: a decided pass is decided again");
  }
  if (!is_longer) return break_rule("DA-10: the home forgets a decision");
  of.truth.learn(now);
}

void World::check_grant(int context, PassNumber pass) {
  Context& of = contexts_[context];
  watch_home(context);
  if (pass.value <= of.granted) return break_rule("DA-1: pass " + std::to_string(pass.value) + " is granted twice");
  if (of.truth.up_to().value + 1 != pass.value) {
    return break_rule("DA-1: pass " + std::to_string(pass.value) + " is granted before the last one is decided");
  }
  of.granted = pass.value;
}

// DA-4: when a worker runs its first node, all the graph that the roots reach has been walked, everywhere.
void World::check_first_run(const Part& part) {
  const PassNumber pass = part.graph->pass;
  const auto at = contexts_[part.context].passes.find(pass);
  if (at == contexts_[part.context].passes.end()) return break_rule("a pass runs that was not begun");
  std::set<int> walked = at->second.reachable;
  for (const int source : at->second.reachable) {
    const WorkerLife life = source == kRoots ? at->second.initiator : recorded_[source].id.maker();
    const Worker& worker = workers_[life.id.value];
    const auto peer = worker.parts.find(part.context);
    // A worker that is gone has no graph to look at; it was checked while it lived.
    if (worker.life != life || !worker.alive || peer == worker.parts.end() || !peer->second->graph) continue;
    if (peer->second->graph->pass == pass && peer->second->graph->walked.count(source) == 0) {
      return break_rule("DA-4: " + name(part) + " runs before m" + std::to_string(source) + " was walked");
    }
  }
}

std::set<int> World::reachable(int context, const std::set<int>& roots) const {
  std::set<int> seen = {kRoots};
  std::deque<int> next(roots.begin(), roots.end());
  while (!next.empty()) {
    const int message = next.front();
    next.pop_front();
    if (!seen.insert(message).second || recorded_[message].context != context) continue;
    next.insert(next.end(), recorded_[message].reaches.begin(), recorded_[message].reaches.end());
  }
  return seen;
}

// Returns whether a pass in mode FAST can complete: every worker that the pass reaches must get a gradient for each
// message it has sent.
bool World::fast_completes(int context, int initiator, const std::set<int>& roots) const {
  std::set<int> fed = {kRoots};
  std::set<int> reached = {initiator};
  const auto sends = [&](int worker) {
    std::vector<int> all;
    for (std::size_t i = 0; i < recorded_.size(); ++i) {
      if (recorded_[i].context == context && recorded_[i].sender == worker) all.push_back(static_cast<int>(i));
    }
    return all;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const int worker : std::set<int>(reached)) {
      std::map<int, bool> nodes;  // R node -> whether all sources that reach it are fed
      const auto count = [&](const std::set<int>& reaches, bool is_fed) {
        for (const int node : reaches) nodes.try_emplace(node, true).first->second &= is_fed;
      };
      if (worker == initiator) count(roots, true);
      for (const int send : sends(worker)) count(recorded_[send].reaches, fed.count(send) != 0);
      for (const auto& [node, is_ready] : nodes) {
        if (!is_ready || !fed.insert(node).second) continue;
        reached.insert(recorded_[node].sender);
        moved = true;
      }
    }
  }
  for (const int worker : reached) {
    for (const int send : sends(worker)) {
      if (fed.count(send) == 0) return false;
    }
  }
  return true;
}

void World::pass_ended(Part& part, const PassEnded& ended) {
  const Context& context = contexts_[part.context];
  say(name(part) + " has its pass ended: " + (ended.outcome ? "ok" : ended.outcome.error().message()));
  if (!part.opened) return break_rule("DA-10: a pass of " + name(part) + " ends twice");
  part.opened = false;
  const DecidedSet& truth = context.truth;
  if (ended.outcome) {
    ++ended_ok_;
    if (!truth.is_ok(ended.pass)) return break_rule("DA-10: ok at " + name(part) + ", but not at the home");
    if (part.graph && part.graph->pass == ended.pass)
      return break_rule("DA-8: the pass is over, but gradients of " + name(part) + " are not merged");
  } else {
    ++ended_failed_;
    if (truth.is_ok(ended.pass) && !part.released) {
      return break_rule("DA-10: failed at " + name(part) + ", ok at the home");
    }
    if (!truth.contains(ended.pass) && ended.pass.value != 0 && !part.released) {
      return break_rule("DA-10: failed at " + name(part) + ", undecided at the home");
    }
  }
  if (!calm_ || context.release_asked) return;
  // Without faults, the outcome must be the one that follows from the graph.
  const Errc code = ended.outcome ? Errc::ok : ended.outcome.error().code();
  Errc expected = Errc::ok;
  if (ended.pass.value == 0) {
    expected = Errc::pass_busy;
  } else {
    const PassTruth& pass = context.passes.at(ended.pass);
    if (code == Errc::graph_freed && !truth.failed().empty()) return;
    if (pass.mode == Mode::fast && (pass.disturbed || pass.foreign)) return;
    if (pass.foreign) expected = Errc::foreign_context;
    if (pass.mode == Mode::fast && !pass.fast_completes) expected = Errc::unused_branch;
  }
  if (code != expected) {
    break_rule("DA-10: a pass of " + name(part) + " without any fault ends with " + std::string(to_string(code)) +
               " instead of " + std::string(to_string(expected)));
  }
}

void World::come_to_rest() {
  for (int steps = 0; broken_.empty(); ++steps) {
    if (steps == kLongestRest) return break_rule("DA-10: the world does not come to rest");
    // Both orders have their turn.
    const bool moved = steps % 2 == 0 ? deliver(static_cast<std::uint32_t>(steps)) || work(0)
                                      : work(static_cast<std::uint32_t>(steps)) || deliver(0);
    dropped_.clear();
    if (!moved) return;
  }
}

void World::check_at_rest() {
  for (const Part* part : parts()) {
    if (!broken_.empty()) return;
    if (part->opened || part->passes->ledger()) return break_rule("DA-10: the pass of " + name(*part) + " never ends");
    if (part->passes->pass() || part->graph || part->job) {
      return break_rule("DA-10: " + name(*part) + " still takes part in a pass");
    }
    const Context& context = contexts_[part->context];
    for (std::uint64_t number = 1; number <= context.truth.up_to().value; ++number) {
      std::multiset<int> expected;
      const auto pass = context.passes.find({number});
      if (context.truth.is_ok({number}) && pass != context.passes.end()) {
        for (const int source : pass->second.reachable) {
          const WorkerLife life = source == kRoots ? pass->second.initiator : recorded_[source].id.maker();
          if (life == workers_[part->worker].life) expected.insert(source);
        }
      }
      const auto book = part->book.find({number});
      if ((book == part->book.end() ? std::multiset<int>{} : book->second) != expected) {
        return break_rule("DA-8: the book of " + name(*part) + " is wrong about pass " + std::to_string(number));
      }
    }
  }
}

// DA-13: nothing is left of released contexts but a number for each life.
void World::check_empty() {
  for (const Part* part : parts()) {
    if (!broken_.empty()) return;
    break_rule("DA-13: " + name(*part) + " outlives its release");
  }
  for (const Worker& worker : workers_) {
    if (!worker.alive) continue;
    if (worker.table.open_contexts() != 0) break_rule("DA-13: a context stays open after all were released");
    if (worker.table.remembered() > lives_ + contexts_.size()) break_rule("DA-13: too much is remembered");
  }
}

}  // namespace caftan::autograd::model
