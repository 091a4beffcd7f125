/// The actions that the classes of the backward protocol ask their owner to carry out, in the listed order. The owner
/// is the context's actor, which has the graph, the tensors and the connections to other workers.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "caftan/autograd/internal/messages.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::autograd {

/// Send to the context actor of `to`. If there is no session with that life, call `peer_down(to)` afterwards (never
/// from inside the action); if a mark or a report is beyond a limit, `not_sent` (DA-24). Beside a Grad go the tensors
/// that R(m) was given; a Grad to this worker itself is received like any other, all other messages to itself are dealt
/// with inside.
struct Send {
  WorkerLife to;
  PassMessage message;
};

/// `worker` takes part in a pass of this worker: the end of its session must come as `peer_down`. If there is no
/// session with it, call that at once (never from inside the action), before anything of a later session.
struct WatchWorker {
  WorkerLife worker;
};
/// Make the engine of this pass. Ends with MergeGradients or DropGradients of the same pass.
struct BeginPass {
  PassNumber pass;
  Mode mode = Mode::smart;
  bool keep = false;
  /// Objects whose turns the code that waits for the pass keeps. A graph that has to be run in turn with one of them
  /// cannot run: `graph_failed` with `would_deadlock` (DA-22).
  std::vector<HeldByWaiter> held = {};
};
/// Walk from the roots (if `from_roots`) and from S(m) of each message, with the visited set of the pass. Call `found`
/// for the R nodes met, as often as you like, then `walked` or `graph_failed`, once.
struct WalkGraph {
  PassNumber pass;
  bool from_roots = false;
  std::vector<AutogradMessageId> messages;
};
/// If `sources_counted` is false: first count dependencies from the roots (if `from_roots`) and from S(m) of each of
/// `sources`, once per pass, and start at the roots; in FAST mode nothing was walked before, and a foreign R node is
/// `graph_failed` (DA-3). Then give S(m) of each of `feed` its gradient, and run until no node is ready, in as many
/// slices as you like. Call `produced` for each R node that has run, then `ran` or `graph_failed`, once.
struct RunGraph {
  PassNumber pass;
  bool sources_counted = false;
  bool from_roots = false;
  std::vector<AutogradMessageId> sources;
  std::vector<AutogradMessageId> feed;
};
/// Abandon the current walk or run at the next node boundary; still report its completion.
struct StopGraph {
  PassNumber pass;
};
/// The pass is decided ok: add its staged gradients to the context's book, and forget everything else of the pass
/// (DA-8).
struct MergeGradients {
  PassNumber pass;
};
/// The pass failed: forget everything of the pass.
struct DropGradients {
  PassNumber pass;
};
/// At the initiator, once per `open`: resolve the future. The gradients of this worker are merged already.
struct PassEnded {
  PassNumber pass;  ///< 0 = none was granted
  Result<void> outcome;
};
/// The context is over here: refuse new recordings, call ContextTable::released, send each of `tell` a Release with
/// ContextTable::released_around, and give later messages of this context to ContextTable::refuse.
struct ContextReleased {
  std::vector<WorkerLife> tell;
};
/// After ContextReleased, once no walk or run is under way: forget all nodes and gradients, quit.
struct ContextEmpty {};

using PassAction = std::variant<Send, WatchWorker, BeginPass, WalkGraph, RunGraph, StopGraph, MergeGradients,
                                DropGradients, PassEnded, ContextReleased, ContextEmpty>;
using PassActions = std::vector<PassAction>;

/// An R node met by a walk.
struct FoundRecv {
  /// The context in which the message was recorded; if it is not the pass's, the pass fails with `foreign_context`
  /// (DA-3).
  ContextId context;
  AutogradMessageId message;
};

/// How a run stopped: no node is ready.
struct RunResult {
  bool drained = false;            ///< no dependency is open: every node of the pass has run
  std::uint64_t staged_bytes = 0;  ///< bytes of the gradients in the staged book
};

/// Limits on what one context may hold (DA-17).
struct PassLimits {
  std::uint64_t staged_bytes = std::uint64_t{16} << 30;  ///< bytes of staged gradients and queued gradient messages
};

}  // namespace caftan::autograd
