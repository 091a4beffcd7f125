/// `autograd::Context`: a scope whose calls are recorded, so that gradients flow back through them over all workers.
///     autograd::Context context(worker);
///     at::Tensor loss = worker.rpc_sync<&forward>("worker1", x).sum();
///     context.backward({loss});
///     at::Tensor dx = context.gradients().of(x);
/// Gradients are kept in the context, never in `.grad`; each worker has those of its own leaves. Called functions run
/// in their caller's context: `Context::current`.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "caftan/autograd/gradient_book.hpp"
#include "caftan/autograd/mode.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/rpc/call_site.hpp"

namespace caftan::autograd {

class ContextRecord;

/// Options of one backward pass.
struct BackwardOptions {
  bool retain_graph = false;  ///< keep the graph on all workers, for another pass
  Mode mode = Mode::smart;    ///< fast: fewer messages, but a recorded call that the roots do not use is an error
  /// Time for the whole pass, > 0; unset = no limit: the loss of a worker ends the pass in any case.
  std::optional<base::Duration> timeout = {};
  /// The gradient of each root; empty: 1 for each root, which must then be a scalar.
  std::vector<at::Tensor> gradients = {};
};

/// The gradients of one worker's leaves: `of(parameter)` is undefined for a tensor without one. A copy of the moment:
/// later passes do not change it.
using Gradients = GradientBook;

/// A view of a context for code that does not own the context. Cheap to copy. Threads: any, all methods.
class ContextView {
 public:
  /// @param record  null makes an empty view; only assigning and destroying are allowed then
  explicit ContextView(std::shared_ptr<ContextRecord> record) : record_(std::move(record)) {}

  /// Returns the id of the context, the same at every worker.
  ContextId id() const noexcept;

  /// Runs a backward pass from `roots` through the graphs of all workers, and waits. When it returns, each worker's
  /// gradients are in the context; a pass that fails changes none, on any worker.
  /// Errors (thrown): bad_arguments (no roots, a root that needs no gradient, not scalar and without gradient, a
  ///   gradient that does not fit; a timeout <= 0; inside InferenceMode), context_released, foreign_context (the graph
  ///   has a call of another context), reentrant_pass (from inside a node of this context), pass_busy (another pass of
  ///   this context is open), unused_branch (Mode::fast), graph_freed, backward_failed (a node threw, at any worker),
  ///   invalid_gradient, limit_exceeded (64 passes of this context have failed; gradients larger than a limit),
  ///   peer_down, timeout, shut_down, would_deadlock (from an exclusive method).
  /// Source: torch.distributed.autograd.backward. Differences: unused results are no hang, roots need not be scalars, a
  ///   failed pass leaves no partial sums, and no time-out but the one given here ends it.
  void backward(const std::vector<at::Tensor>& roots, const BackwardOptions& options = {}) const {
    try_backward(roots, options).value();
  }
  /// The same from one root.
  void backward(const at::Tensor& root, const BackwardOptions& options = {}) const {
    backward(std::vector<at::Tensor>{root}, options);
  }
  Result<void> try_backward(const std::vector<at::Tensor>& roots, const BackwardOptions& options = {}) const {
    return backward_async(roots, options).result();
  }
  /// As backward, without waiting. Cancelling the future ends the pass, on all workers, unless it was decided already:
  /// then its gradients are in the context all the same.
  Future<void> backward_async(const std::vector<at::Tensor>& roots, const BackwardOptions& options = {}) const;

  /// Returns the gradients of this worker's leaves. Errors (thrown): context_released.
  /// Source: torch.distributed.autograd.get_gradients.
  Gradients gradients() const { return try_gradients().value(); }
  Result<Gradients> try_gradients() const;

  /// Returns `function` as a function that runs in this context on any thread: a thread that the user makes has no
  /// context by itself. It does not keep the context alive: after the context's end, calls that it makes fail with
  /// context_released.
  template <class F>
  auto bind(F&& function) const {
    return [ambient = bound_ambient(), calls = std::make_shared<std::atomic<std::uint64_t>>(0),
            f = std::forward<F>(function)](auto&&... arguments) mutable -> decltype(auto) {
      Ambient own = ambient;
      own.order = {OrderKey{own.order.key, calls->fetch_add(1, std::memory_order_relaxed)}.next(), 0};
      const AmbientSwap swap(&own);
      return f(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  const std::shared_ptr<ContextRecord>& record() const noexcept { return record_; }

 protected:
  std::shared_ptr<ContextRecord> record_;

 private:
  Ambient bound_ambient() const;
};

/// The handle that owns a context, at the worker that makes the context. The handle's end releases the context on all
/// workers, once the calls and passes of its own code have ended; the destructor does not wait for that. Until the
/// handle ends, the context is the current one for the code of the thread that made it. A handle that was moved away
/// and ends on another thread leaves that thread in an ended context: its calls fail with context_released.
class Context : public ContextView {
 public:
  /// @param site  a Worker or a RoleContext
  /// Errors (thrown): bad_arguments (this code runs in a context already), unsupported (the worker records nothing),
  ///   shut_down.
  /// Source: torch.distributed.autograd.context.
  explicit Context(const CallSite& site) : Context(try_make(site).value()) {}
  /// As the constructor, without throwing.
  static Result<Context> try_make(const CallSite& site);

  Context(Context&&) noexcept = default;
  Context& operator=(Context&& other) noexcept;
  ~Context() { end(); }

  /// Returns the context that the running code is in: the caller's, in a called function.
  /// Errors (thrown): unknown_context (it is in none), context_released, foreign_context (in one of another worker).
  static ContextView current(const CallSite& site) { return try_current(site).value(); }
  static Result<ContextView> try_current(const CallSite& site);

 private:
  /// The Ambient of the thread that made the context, and its former context, which `end` restores.
  struct Scope {
    Ambient* ambient = nullptr;
    std::thread::id thread;
    std::weak_ptr<void> previous;
    OrderKey previous_order;
  };
  Context(std::shared_ptr<ContextRecord> record, Scope scope)
      : ContextView(std::move(record)), scope_(std::move(scope)) {}
  void end() noexcept;

  Scope scope_;
};

}  // namespace caftan::autograd
