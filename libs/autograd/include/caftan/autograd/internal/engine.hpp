/// `Engine`: this worker's part of one backward pass, without network: an own dependency-counted walk over torch's
/// graph. Make one per pass and worker (`begin`), name where gradients will come from (`add_roots`, `mark`), `walk`
/// until done, then `feed` gradients as they arrive and `run` slices until drained; take the leaf gradients with
/// `take_staged`. Which messages a pass marks and when it may run is decided elsewhere
/// (docs/protocols/dist_autograd.md).
///
/// What torch's engine honours is honoured: hooks of tensors and nodes, retain_grad, sparse and undefined gradients,
/// version checks, anomaly mode, custom Functions, a stock backward inside a node. Not called, because they act on
/// `.grad`, which a pass leaves alone: hooks set by register_post_accumulate_grad_hook. CPU tensors only.
///
/// Order of summation: contributions to one input are added in an order that the program's structure decides, whatever
/// order gradients arrive in. Nodes of the spans named by `add_spans` come by key, within one the latest first, as in
/// torch's engine; all others after them by (topological_nr, depth-first number from the roots, then from the marked
/// messages by order key). A graph without marked messages that one thread recorded needs no span to be named. So
/// results are bit-equal to torch's where one span recorded everything.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "caftan/autograd/gradient_book.hpp"
#include "caftan/autograd/internal/leaf_exchange.hpp"
#include "caftan/autograd/internal/nodes.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::autograd {

/// The context of an engine's pass, and whether its graph is kept.
struct EngineOptions {
  ContextId context;
  bool keep_graph = false;  ///< keep what nodes saved, for another pass (torch's retain_graph)
};

/// Receives the gradients that a run has computed for other workers.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// Called once for each RecvFunction the pass has visited, also when nothing reached it (DA-6), inside `run`.
  /// @param gradients  one per recorded tensor of the message: undefined, or with its sizes, dtype and device
  virtual void on_gradients(const RecordedMessage& message, std::vector<at::Tensor>&& gradients) = 0;
};

/// One worker's part of one backward pass. Threads: each method names its own.
class Engine {
 public:
  /// What one call of `walk` did.
  struct WalkSlice {
    /// The RecvFunctions that this slice was the first to reach. The caller refuses those of other contexts (DA-3).
    std::vector<RecordedMessage> found;
    bool done = false;  ///< everything marked so far has been walked
  };
  /// What one call of `run` did.
  struct RunSlice {
    std::size_t nodes = 0;  ///< that ran
    bool drained = false;   ///< every visited node has run, and every marked message had its gradients
    bool idle = false;      ///< nothing can run before more gradients arrive; also set when drained
    /// Every node has run, and leaves that are exchanged are not back: run again when `when_returned` says so.
    bool awaits_leaves = false;
  };

  /// Starts a worker's part of a pass, under the thread-local state of the calling thread with grad mode off.
  /// Errors: bad_arguments inside InferenceMode (gradients would be inference tensors).
  static Result<std::unique_ptr<Engine>> begin(const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Names the tensors to differentiate; at the initiator, once, before the first walk.
  /// @param gradients  empty, or one per root: undefined means 1, which only a root of one element may have
  /// Errors: bad_arguments naming the root: none at all, undefined, needs no gradient, not scalar and without gradient,
  ///         a gradient of other sizes, dtype, device or layout.
  Result<void> add_roots(std::span<const at::Tensor> roots, std::span<const at::Tensor> gradients = {});

  /// Marks a message sent by this worker: its gradients will arrive. To mark it again is not an error.
  /// Errors: backward_failed when the pass runs already. Threads: any.
  Result<void> mark(std::shared_ptr<const SendFunction> send);

  /// Names the spans of this worker that recorded in the context, in any order. Call it before the first run; a later
  /// call replaces the spans of an earlier one. Of several spans around a node the innermost counts; spans that share a
  /// key count as not named.
  /// Threads: any, one at a time with walk and run.
  void add_spans(std::vector<CodeSpan> spans);

  /// Names the exchanges of leaves that take part in the pass. Call it before the first run.
  /// Threads: as add_spans.
  void set_exchanges(std::vector<std::shared_ptr<LeafExchange>> exchanges);

  /// Visits up to `nodes` nodes from the roots and marked messages on. Nothing is run (DA-4).
  /// Threads: any, one at a time with run.
  WalkSlice walk(std::size_t nodes);

  /// Hands over the gradients of a marked message. May overlap with run.
  /// Errors: malformed_payload (not marked, a second time, not what SendFunction::check allows), backward_failed
  ///         (marked and not walked yet, DA-4).
  /// Threads: any.
  Result<void> feed(const AutogradMessageId& message, std::vector<at::Tensor> gradients);

  /// Runs up to `nodes` nodes. The first call counts dependencies: nothing can be marked after it.
  /// Errors: backward_failed (a node or hook threw: the text has its name and what it said, the cause what it threw if
  ///         that was an RpcException; or the walk has not ended), cancelled after `abort`; the same at every later
  ///         call.
  /// Threads: any, one at a time with walk. Blocks as long as nodes run.
  Result<RunSlice> run(std::size_t nodes, GradientSink& sink);

  /// Calls `ready` once, when the exchanged leaves are back or the pass was aborted: inside this call if so already.
  /// Precondition: the last run returned awaits_leaves. Threads: any; `ready` is called on any.
  void when_returned(std::function<void()> ready);

  /// Makes `run` stop before its next node, in this call and all later ones (DA-11). Threads: any.
  void abort() noexcept;

  /// Returns the name of the node that failed, empty when none did. Threads: not during run.
  const std::string& failed_node() const noexcept;

  /// Returns bytes of gradients held: fed and not yet used, and staged (DA-17). Threads: any.
  std::uint64_t bytes() const noexcept;

  /// Returns the gradients of this worker's leaves. Precondition: drained. Threads: not during run.
  GradientBook take_staged();

  /// Returns whether the calling thread is inside a node, hook or sink that a pass of `context` runs (DA-14).
  static bool is_inside_pass_of(const ContextId& context) noexcept;

 private:
  class State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace caftan::autograd
