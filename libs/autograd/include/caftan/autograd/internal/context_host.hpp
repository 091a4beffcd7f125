/// `ContextHost`: what recording and the user's handles ask of the worker: its contexts, and passes over them.
/// Implemented by the worker, which has the actors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/autograd/internal/engine.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/request.hpp"

namespace caftan::autograd {

/// What the initiator of a backward pass gives to start it.
struct PassStart {
  std::unique_ptr<Engine> engine;  ///< with its roots
  Mode mode = Mode::smart;
  bool keep = false;
  std::vector<HeldByWaiter> held;  ///< by the calling code
  base::TimePoint deadline = base::kNever;
  /// The strand whose turn the caller holds: the caller's graph is read on that strand; null = none.
  std::shared_ptr<rpc::Strand> strand;
};

/// Threads: any, all methods; none blocks.
class ContextHost {
 public:
  virtual ~ContextHost() = default;

  /// Makes a context of this worker. Errors: shut_down.
  virtual Result<std::shared_ptr<ContextRecord>> create() = 0;
  /// Finds the context that a frame from `from` names. If this worker takes no part in the context yet, it joins: the
  /// creator of the context is sent a message.
  /// Errors: context_released, unknown_context, shut_down.
  virtual Result<std::shared_ptr<ContextRecord>> enter(const ContextId& context, const Peer& from) = 0;
  /// Releases a context that this worker made, at every worker that joined it, once the passes opened here are over.
  virtual void release(const ContextId& context) noexcept = 0;
  /// A frame has brought decided passes to the record.
  virtual void learned(const ContextId& context) = 0;
  /// Runs a pass. The future gets the outcome of the pass, once this worker's gradients are in the book of the context.
  virtual Future<void> start_pass(const std::shared_ptr<ContextRecord>& context, PassStart start) = 0;

  virtual WorkerLife self() const noexcept = 0;
  /// Returns the peer's present life; none when there is no connection.
  virtual std::optional<WorkerLife> life_of(const Peer& peer) const = 0;
  /// Returns the peer's name, for errors.
  virtual std::string name_of(WorkerId peer) const = 0;
};

}  // namespace caftan::autograd
