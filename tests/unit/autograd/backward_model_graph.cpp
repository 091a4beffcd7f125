// The model's engine, which walks and runs its graph in slices. A node is a recorded message; the gradients that a node
// adds at its worker are represented by the node's number.
#include "backward_model_world.hpp"

namespace caftan::autograd::model {

const std::set<int>& World::reaches(const Part& part, int source) const {
  return source == kRoots ? part.graph->roots : recorded_[source].reaches;
}

void World::begin_pass(Part& part, const BeginPass& begin) {
  if (part.graph) return break_rule("DA-1: " + name(part) + " begins a pass before the last one is settled");
  part.graph.emplace();
  part.graph->pass = begin.pass;
  part.graph->mode = begin.mode;
  const PassLedger* ledger = part.passes->ledger();
  if (!ledger || ledger->pass().number != begin.pass || ledger->phase() == PassLedger::Phase::opening) return;
  // The initiator.
  Context& context = contexts_[part.context];
  if (part.passes->is_home()) check_grant(part.context, begin.pass);
  part.graph->roots = part.next_roots;
  PassTruth truth;
  truth.initiator = workers_[part.worker].life;
  truth.mode = begin.mode;
  truth.reachable = reachable(part.context, part.next_roots);
  for (const int message : truth.reachable) {
    if (message != kRoots && recorded_[message].context != part.context) truth.foreign = true;
  }
  if (begin.mode == Mode::fast) {
    for (const Recorded& message : recorded_) {
      if (message.context != part.context) continue;
      for (const int node : message.reaches) truth.foreign = truth.foreign || recorded_[node].context != part.context;
    }
    truth.fast_completes = fast_completes(part.context, part.worker, part.next_roots);
  }
  context.passes[begin.pass] = std::move(truth);
}

void World::begin_walk(Part& part, const WalkGraph& walk) {
  if (part.job || !part.graph || part.graph->pass != walk.pass) {
    return break_rule("DA-11: " + name(part) + " is asked to walk while something runs");
  }
  part.job = Job{walk.pass, false, {}, {}, {}, false};
  if (walk.from_roots) part.job->sources.push_back(kRoots);
  for (const AutogradMessageId& message : walk.messages) part.job->sources.push_back(by_id_.at(message));
}

void World::begin_run(Part& part, const RunGraph& run) {
  if (part.job || !part.graph || part.graph->pass != run.pass) {
    return break_rule("DA-11: " + name(part) + " is asked to run while something runs");
  }
  Graph& graph = *part.graph;
  part.job = Job{run.pass, true, {}, {}, {}, false};
  if (!run.sources_counted) {
    if (graph.counted) break_rule("DA-5: dependencies of " + name(part) + " are counted twice");
    graph.counted = true;
    if (graph.mode == Mode::smart) check_first_run(part);
    std::set<int> sources;
    if (run.from_roots) sources.insert(kRoots);
    for (const AutogradMessageId& message : run.sources) sources.insert(by_id_.at(message));
    if (without_ == Without::da5_fresh_counts) sources.insert(part.stale_sources.begin(), part.stale_sources.end());
    for (const int source : sources) {
      for (const int node : reaches(part, source)) {
        ++graph.waits[node];
        if (recorded_[node].context != part.context) part.job->failure = Errc::foreign_context;  // DA-3
      }
    }
    if (run.from_roots) part.job->sources.push_back(kRoots);
  }
  for (const AutogradMessageId& message : run.feed) part.job->sources.push_back(by_id_.at(message));
}

bool World::work(std::uint32_t choice) {
  std::vector<Part*> active;
  for (Part* part : parts()) {
    if (part->job) active.push_back(part);
  }
  if (active.empty()) return false;
  work_on(*active[choice % active.size()], choice / 16 % 2 == 0);
  return true;
}

// Runs one slice of the job of a pass, or with `all` every slice that is left.
void World::work_on(Part& part, bool all) {
  do {
    Job& job = *part.job;
    const PassNumber pass = job.pass;
    if (job.failure && !job.stopped) {
      const Errc code = *job.failure;
      part.job.reset();
      return perform(part.worker, part.context, part.passes->graph_failed(pass, Error(code, "")));
    }
    Graph& graph = *part.graph;
    if (!job.stopped && !job.sources.empty()) {
      const int source = job.sources.back();
      job.sources.pop_back();
      if (job.is_run) {
        feed(part, job, source);
        if (without_ == Without::da6_one_feed_each) graph.staged.insert(source);
        continue;
      }
      if (!graph.walked.insert(source).second) {
        return break_rule("DA-5: " + name(part) + " walks from m" + std::to_string(source) + " twice");
      }
      std::vector<FoundRecv> found;
      for (const int node : reaches(part, source)) {
        const bool is_new = graph.found.insert(node).second;
        if (!is_new && without_ != Without::da5_one_visited_set) continue;
        const int context = without_ == Without::da3_refusal_of_foreign_nodes ? part.context : recorded_[node].context;
        found.push_back({contexts_[context].id, recorded_[node].id});
      }
      perform(part.worker, part.context, part.passes->found(pass, found));
    } else if (!job.stopped && !job.ready.empty()) {
      const int node = job.ready.back();
      job.ready.pop_back();
      contexts_[part.context].passes[pass].produced.insert(node);
      const bool is_undefined = node % 3 == 0;
      if (is_undefined && without_ == Without::da6_undefined_gradients) continue;
      perform(part.worker, part.context, part.passes->produced(pass, recorded_[node].id));
    } else {
      const bool is_run = job.is_run;
      RunResult result{!job.stopped, 0};
      for (const auto& [node, waits] : graph.waits) result.drained = result.drained && waits == 0;
      part.job.reset();
      return perform(part.worker, part.context, is_run ? part.passes->ran(pass, result) : part.passes->walked(pass));
    }
  } while (all && part.job && broken_.empty());
}

void World::feed(Part& part, Job& job, int source) {
  PassTruth& truth = contexts_[part.context].passes[job.pass];
  truth.ran = true;
  if (source != kRoots && truth.produced.count(source) == 0) {
    return break_rule("DA-16: m" + std::to_string(source) + " is fed with a gradient that its R node did not send");
  }
  part.graph->staged.insert(source);
  for (const int node : reaches(part, source)) {
    if (--part.graph->waits[node] == 0) job.ready.push_back(node);
  }
}

void World::settle(Part& part, PassNumber pass, bool merge) {
  if (!part.graph || part.graph->pass != pass) return break_rule(name(part) + " settles a pass it does not have");
  if (part.job) return break_rule("DA-11: " + name(part) + " settles a pass whose nodes still run");
  const DecidedSet& truth = contexts_[part.context].truth;
  if (!truth.contains(pass) && !part.released) {
    return break_rule("DA-7: " + name(part) + " settles a pass that the home has not decided");
  }
  if (merge && !truth.is_ok(pass)) return break_rule("DA-8: " + name(part) + " merges a pass that is not ok");
  say(name(part) + (merge ? " merges" : " drops") + " pass " + std::to_string(pass.value));
  part.stale_sources = part.graph->walked;
  part.stale_sources.erase(kRoots);
  if (merge || without_ == Without::da8_drop_on_failure) {
    for (const int source : part.graph->staged) part.book[pass].insert(source);
  }
  part.graph.reset();
}

}  // namespace caftan::autograd::model
