/// One pass's graph at this worker: its engine, and the runner jobs that walk and run it. The context's actor starts
/// them and gets what they find as events; no node runs in an actor's handler (DA-11). A walk runs no node, so the
/// handler that asks for one walks a small graph at once.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include <caf/actor.hpp>

#include "autograd/autograd_messages.hpp"
#include "autograd/autograd_ports.hpp"
#include "caftan/autograd/internal/engine.hpp"

namespace caftan::actors {

/// Threads: the context's actor calls walk and run, each only when the one before is done.
class GraphJob final : public std::enable_shared_from_this<GraphJob> {
 public:
  using Functions = std::vector<std::shared_ptr<const autograd::SendFunction>>;
  struct Feed {
    AutogradMessageId message;
    std::vector<at::Tensor> gradients;
  };

  /// @param context  the actor that gets the events
  /// @param strand  of the code that started the pass, null = none
  /// @param held  by the chain of calls that waits for the pass: what is read in turn with one of them fails (DA-22)
  GraphJob(ContextPorts& ports, caf::actor context, std::shared_ptr<autograd::ContextRecord> record,
           autograd::PassNumber pass, std::shared_ptr<autograd::Engine> engine, std::shared_ptr<rpc::Strand> strand,
           std::vector<autograd::HeldByWaiter> held);

  /// Walks the graph from the nodes marked before and from `marks` on. With `in_place`, unless there are many marks,
  /// the first nodes are walked in this call, which returns what they gave; runner jobs walk the others and send
  /// events, the last one with `done`.
  std::optional<context_event::Walked> walk(Functions marks, bool in_place);
  /// Feeds, then runs what can run. Ends with a Ran event that is done.
  /// @param sources  marked first, at the first run of a pass without marks
  void run(Functions sources, std::vector<Feed> feeds);
  /// Makes the walk or run that is under way end soon, between two nodes.
  void stop() noexcept;

 private:
  class Sink;
  void post(void (GraphJob::*job)());
  void walk_on();
  context_event::Walked walk_slice(std::size_t nodes);
  void run_slice();
  void run_nodes();
  Result<void> check_not_held(const std::vector<std::shared_ptr<rpc::Strand>>& strands) const;

  /// Counts the graph at its worker, which ends after its graphs. First of the members: destroyed last.
  class Counted {
   public:
    Counted(ContextPorts& ports, const ContextId& context);
    ~Counted();
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    ContextPorts& ports_;
    const ContextId context_;
  };

  const Counted counted_;
  base::Executor& executor_;
  const caf::actor context_;
  const std::shared_ptr<autograd::ContextRecord> record_;
  const autograd::PassNumber pass_;
  const std::shared_ptr<autograd::Engine> engine_;
  const std::shared_ptr<rpc::Strand> strand_;
  const std::vector<autograd::HeldByWaiter> held_;
  std::atomic<bool> stopped_{false};
  // Of the job under way:
  bool begun_ = false;  // a run has begun
  Functions marks_;
  std::vector<Feed> feeds_;
  // All messages marked in the pass: their graphs are read with the turns of their strands.
  std::vector<AutogradMessageId> marked_;
};

}  // namespace caftan::actors
