/// The world of the backward protocol's model test: workers, sessions, graphs and faults around the real ContextPasses
/// and ContextTable. Start with World::run. The oracle judges by the recorded graph and by what the homes wrote; it
/// never asks the classes what is right.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backward_model_history.hpp"
#include "caftan/autograd/internal/context_passes.hpp"
#include "caftan/autograd/internal/context_table.hpp"

namespace caftan::autograd::model {

/// A world in which one rule does not hold. The classes under test know nothing of it.
enum class Without : std::uint8_t {
  nothing,
  da1_one_open_pass,
  da3_refusal_of_foreign_nodes,
  da4_closing_before_running,
  da4_report_after_the_walk,
  da5_one_visited_set,
  da5_fresh_counts,
  da6_undefined_gradients,
  da6_one_feed_each,
  da7_state_after_the_answer,
  da7_question_to_the_home,
  da8_drop_on_failure,
  da8_merge_after_the_decision,
  da9_pass_numbers,
  da10_fail,
  da10_watching,
  da10_watching_the_unreachable,
  da10_end_to_late_speakers,
  da10_commit_at_the_home,
  da13_refusal_of_released,
  da13_release_after_a_late_join,
  da16_peer_of_the_message,
  da19_release_waits,
};
/// Returns the rule's name, for example "DA-1 one open pass".
std::string to_string(Without without);

/// The model's engine for one pass at one worker: its nodes are recorded messages. (Not nested in World: clang 14
/// cannot make an optional of a nested one.)
struct Graph {
  PassNumber pass;
  Mode mode = Mode::smart;
  std::set<int> roots;
  std::set<int> walked;      // sources; kRoots = the roots
  std::set<int> found;       // R nodes
  std::map<int, int> waits;  // R node -> number of sources that must run before it
  std::multiset<int> staged;
  bool counted = false;
};

class World {
 public:
  explicit World(Without without = Without::nothing, std::vector<std::string>* trace = nullptr)
      : without_(without), trace_(trace) {}
  /// Runs the steps, lets everything come to rest, judges, releases all contexts, judges again. Returns what went wrong
  /// first, or nothing. Call it once.
  std::string run(const History& history);
  /// How many passes ended ok and how many failed.
  std::pair<int, int> passes_ended() const { return {ended_ok_, ended_failed_}; }

 private:
  // A recorded message: a node S at the sender, whose gradients go on to the R nodes in `reaches`, and a node R at the
  // receiver.
  struct Recorded {
    AutogradMessageId id;
    int context;
    int sender;
    int receiver;
    WorkerLife receiver_life;
    std::set<int> reaches;
    bool arrived = false;
  };
  struct Job {
    PassNumber pass;
    bool is_run = false;
    std::vector<int> sources;  // to walk, or to feed
    std::vector<int> ready;    // R nodes to give out
    std::optional<Errc> failure;
    bool stopped = false;
  };
  struct Part final : RecordedMessages {
    Part(World& of, int at_worker, int of_context) : world(of), worker(at_worker), context(of_context) {}
    std::optional<WorkerLife> receiver_of(AutogradMessageId message) const override;
    std::vector<AutogradMessageId> sends() const override;

    World& world;
    int worker;
    int context;
    std::unique_ptr<ContextPasses> passes{};
    std::optional<Graph> graph{};
    std::optional<Job> job{};
    std::set<int> next_roots{};
    std::set<int> stale_sources{};  // of the pass before
    std::map<PassNumber, std::multiset<int>> book{};
    bool released = false;
    bool opened = false;  // PassEnded is due
    int uses = 0;
  };
  struct Worker {
    bool alive = true;
    WorkerLife life;
    ContextTable table{WorkerLife{}};
    std::map<int, std::unique_ptr<Part>> parts;
    std::set<int> released;  // contexts that were open here
    std::uint64_t messages = 0;
  };
  struct Session {
    int end[2];
    WorkerLife life[2];
    bool cut = false;
    bool declared[2] = {false, false};
  };
  struct Flight {
    enum class Kind : std::uint8_t { pass, forward, lost } kind{};
    int from = 0;
    int to = 0;
    int session = -1;  // none: inside one worker
    int context = 0;
    WorkerLife life{};  // the sender's life; of a loss, the lost worker's
    PassMessage message{};
    int recorded = -1;
    DecidedSet decided{};
  };
  // The outcome of a pass, kept for the oracle apart from the classes under test.
  struct PassTruth {
    WorkerLife initiator{};
    std::set<int> reachable{};  // with kRoots
    std::set<int> produced{};   // R nodes that ran
    Mode mode = Mode::smart;
    bool foreign = false;
    bool fast_completes = true;
    bool disturbed = false;  // messages were recorded meanwhile
    bool ran = false;
  };
  struct Context {
    ContextId id;
    int home;
    DecidedSet truth{};
    std::uint64_t granted = 0;
    std::map<PassNumber, PassTruth> passes{};
    bool release_asked = false;
  };
  static constexpr int kRoots = -1;

  // backward_model_steps.cpp: user code and faults.
  void step(const Step& step);
  void create(const Step& step);
  void call(const Step& step);
  void backward(const Step& step);
  void use(const Step& step);
  void end_use(Part& part);
  void release(int context);
  void throw_in_node(const Step& step);
  void give_up(const Step& step);
  void forge(const Step& step);
  void cut(int session, std::uint32_t kept);
  void cut_one(const Step& step);
  void crash(const Step& step);
  void restart(const Step& step);
  void reconnect(const Step& step);
  void start_worker(int worker);
  std::vector<int> alive() const;
  std::vector<Part*> parts() const;
  std::vector<int> received(int worker, int context) const;

  // backward_model_network.cpp: sessions, messages, carrying out the actions of the classes.
  void perform(int worker, int context, PassActions actions);
  void end_context(int worker, int context, Part& part, const ContextReleased& released);
  void send(int worker, int context, WorkerLife to, PassMessage message);
  void watch_worker(int worker, WorkerLife peer);
  bool deliver(std::uint32_t choice);
  void deliver_pass(const Flight& flight);
  void deliver_forward(const Flight& flight);
  void lose(int worker, WorkerLife peer);
  int session_of(int worker, WorkerLife peer) const;
  Part& make_part(int worker, int context);
  void drop_part(int worker, int context);

  // backward_model_graph.cpp: walking and running.
  void begin_walk(Part& part, const WalkGraph& walk);
  void begin_run(Part& part, const RunGraph& run);
  bool work(std::uint32_t choice);
  void work_on(Part& part, bool all);
  void feed(Part& part, Job& job, int source);
  const std::set<int>& reaches(const Part& part, int source) const;
  void begin_pass(Part& part, const BeginPass& begin);
  void settle(Part& part, PassNumber pass, bool merge);

  // backward_model_oracle.cpp
  void break_rule(const std::string& what);
  void watch_home(int context);
  void check_grant(int context, PassNumber pass);
  void check_first_run(const Part& part);
  void pass_ended(Part& part, const PassEnded& ended);
  std::set<int> reachable(int context, const std::set<int>& roots) const;
  bool fast_completes(int context, int initiator, const std::set<int>& roots) const;
  void come_to_rest();
  void check_at_rest();
  void check_empty();
  Error calm_error(const Part& part, const PassTruth& pass) const;
  static std::string name(const Part& part);
  void say(const std::string& text) {
    if (trace_) trace_->push_back(text);
  }

  Without without_;
  std::vector<std::string>* trace_;
  bool calm_ = true;
  std::uint64_t lives_ = 0;
  std::vector<Worker> workers_;
  std::vector<Context> contexts_;
  std::vector<Recorded> recorded_;
  std::map<AutogradMessageId, int> by_id_;
  std::map<ContextId, int> context_by_id_;
  std::vector<Session> sessions_;
  std::vector<Flight> flights_;
  std::vector<std::unique_ptr<Part>> dropped_;  // until the step is over
  int ended_ok_ = 0;
  int ended_failed_ = 0;
  std::string broken_;
};

}  // namespace caftan::autograd::model
