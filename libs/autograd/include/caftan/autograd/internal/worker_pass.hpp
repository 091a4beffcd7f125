/// `WorkerPass`: one worker's part of one backward pass. It decides what to walk and what to run, sends marks, reports
/// and gradients, and knows when its part is complete. The caller has the graph itself: see pass_actions.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "caftan/autograd/internal/pass_actions.hpp"
#include "caftan/autograd/internal/recorded_messages.hpp"

namespace caftan::autograd {

/// At most one per context and worker. Threads: none of its own; call it from one actor.
class WorkerPass {
 public:
  enum class Phase : std::uint8_t {
    marking,  ///< SMART: marks arrive and are walked; no node runs (DA-4)
    running,  ///< gradients arrive and nodes run
    done,     ///< all marked gradients have arrived and every node has run
    failed,   ///< has sent Fail; waits for the outcome like any other (DA-7)
  };

  /// @param recorded  must outlive this
  WorkerPass(WorkerLife self, PassHeader header, const RecordedMessages& recorded, PassLimits limits);

  /// Begins the pass at its initiator, with the roots.
  PassActions begin_at_roots();
  /// Begins the pass at another participant. Hand the mark or gradient that arrived first to the object next.
  PassActions begin();

  /// Marks arrived. A mark of a message that was not sent to `from` (DA-16), or that is marked already, fails the pass.
  PassActions marked(WorkerLife from, const std::vector<AutogradMessageId>& messages);
  /// The walk met R nodes: their senders are marked.
  PassActions found(const std::vector<FoundRecv>& nodes);
  /// The walk has ended: reports.
  PassActions walked();
  /// The ledger has closed (SMART, at the initiator): nodes may run. Elsewhere the first gradient implies it.
  PassActions ledger_closed();
  /// A gradient arrived. One that is not expected from `from` (DA-6, DA-16), or too many bytes (DA-17), fails the pass.
  PassActions gradient(WorkerLife from, AutogradMessageId message, std::uint64_t bytes);
  /// R(message) ran: sends its gradient.
  PassActions produced(AutogradMessageId message);
  /// The run has stopped.
  PassActions ran(const RunResult& result);
  /// The walk or run under way ended with an error (of a node, of an invalid gradient).
  PassActions graph_failed(const Error& error);
  /// The pass cannot succeed, for a reason outside the graph. The state stays until `conclude` (DA-7).
  PassActions fail(const Error& error);
  /// A session ended: fails the pass if it needs that worker.
  PassActions peer_down(WorkerLife peer, const std::string& name = {});
  /// The outcome is known: merges or drops the gradients, once no walk or run is under way (`over`).
  PassActions conclude(bool ok);

  const PassHeader& header() const noexcept { return header_; }
  PassNumber number() const noexcept { return header_.pass.number; }
  Phase phase() const noexcept { return phase_; }
  /// Returns whether a walk or run is under way.
  bool is_active() const noexcept { return activity_ != Activity::none; }
  bool is_concluded() const noexcept { return outcome_ != Outcome::open; }
  /// The peers that owe this worker gradients or wait for some of its own: the loss of one fails the pass.
  const std::set<WorkerLife>& watched() const noexcept { return watched_; }
  /// Returns whether the pass is concluded and not active: the owner then destroys this object.
  bool over() const noexcept { return is_concluded() && !is_active(); }
  /// Returns the messages whose S nodes take part so far.
  std::vector<AutogradMessageId> messages() const;
  /// Returns whether nodes of this pass have begun to run here: a graph that is not retained is partly freed then.
  bool has_run() const noexcept { return counted_; }

 private:
  enum class Activity : std::uint8_t { none, walking, running };
  /// Messages of the pass, and how many of them are done: their gradients arrived here, or left here.
  struct Progress {
    std::unordered_map<AutogradMessageId, bool> messages;  // true = done
    std::size_t done = 0;

    /// Returns false if the message is there already.
    bool add(AutogradMessageId message) { return messages.emplace(message, false).second; }
    /// Returns false if the message is unknown, or done already.
    bool finish(AutogradMessageId message) {
      const auto at = messages.find(message);
      if (at == messages.end() || at->second) return false;
      at->second = true;
      ++done;
      return true;
    }
    bool all_done() const noexcept { return done == messages.size(); }
  };

  void walk_next(PassActions& actions);
  void run_next(PassActions& actions);
  void report_run(PassActions& actions, bool drained);
  void say_failed(PassActions& actions);
  PassActions stopped();
  std::vector<AutogradMessageId> missing() const;
  bool is_initiator() const noexcept { return header_.initiator == self_; }

  enum class Outcome { open, succeeded, failed };

  WorkerLife self_;
  PassHeader header_;
  const RecordedMessages& recorded_;
  PassLimits limits_;
  Phase phase_ = Phase::marking;
  Activity activity_ = Activity::none;
  bool counted_ = false;  // the dependencies of the graph's nodes are counted
  bool initiator_lost_ = false;
  Outcome outcome_ = Outcome::open;
  Error error_;

  Progress sends_;  // S nodes of the pass; done = its gradient has arrived
  Progress recvs_;  // R nodes of the pass; done = it has run
  std::set<WorkerLife> watched_;

  std::vector<AutogradMessageId> unwalked_;  // marked meanwhile
  // Messages for the next report: with SMART those being walked, with FAST those fed since the last report.
  std::vector<AutogradMessageId> used_up_;
  std::vector<AutogradMessageId> sent_;   // since the last report
  std::vector<AutogradMessageId> unfed_;  // arrived meanwhile
  std::uint64_t queued_bytes_ = 0;        // of unfed_
  std::uint64_t staged_bytes_ = 0;
};

}  // namespace caftan::autograd
