/// `BatchRun`: takes one batch through the stages as a `Schedule` says, with calls, and backward passes of its own.
/// Each micro-batch has an autograd context of its own, since passes of one context do not overlap. The stages add up
/// their gradients in the order of the micro-batches, and give the sums in one more context, by which the optimizer
/// makes a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "caftan/autograd/context.hpp"
#include "caftan/nn/remote_module.hpp"
#include "caftan/optim/distributed_optimizer.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/rpc/call_site.hpp"
#include "pipeline/micro_batches.hpp"
#include "pipeline/schedule.hpp"
#include "pipeline/stage_module.hpp"

namespace caftan::pipeline {

using RemoteStage = nn::RemoteModule<StageModule>;

/// Labelled images of one step.
struct Batch {
  std::uint64_t step = 0;
  at::Tensor images{};         ///< [B, C, H, W]
  at::Tensor labels{};         ///< [B], int64
  std::vector<Rows> pieces{};  ///< its micro-batches
};

/// What ended in a batch: sent by continuations of calls, taken by the thread that runs the batch.
class BatchEvents;

/// Threads: one at a time; that of a role, or of a test.
class BatchRun {
 public:
  /// @param site  of the worker that the last stage gives its results
  /// @param stages  in their order; each one's `next` is the owner of the following one. Both outlive the run
  BatchRun(const CallSite& site, const std::vector<RemoteStage>& stages, ScheduleName schedule, Batch batch);
  ~BatchRun();

  /// Computes the gradients of the mean loss of the batch, and makes one step by them. Waits.
  /// @return the loss, nats. Errors: those of the stages, of calls, passes and steps; cancelled (`stop` was requested)
  Result<double> run(optim::DistributedOptimizer& optimizer, const std::stop_token& stop);

  /// Returns the seconds from the first call to the end of the last backward pass.
  double window() const noexcept { return window_; }

 private:
  struct Piece {
    std::unique_ptr<Ambient> ambient{};  ///< of the code that runs in the context; lives longer than the context
    std::optional<autograd::Context> context{};
    RRef<at::Tensor> data{};  ///< where the next stage needs it
    double loss = 0;
    std::size_t answered = 0;  ///< stages that have taken the gradients
    bool has_ended = false;    ///< its backward, at all stages
  };

  Result<void> compute(const std::stop_token& stop);
  Result<void> begin(const Begin& what);
  Result<void> begin_forward(std::size_t stage, std::size_t piece);
  Result<void> begin_backward(std::size_t piece);
  void end_backward(std::size_t piece);
  void take_gradients();
  Result<void> step(optim::DistributedOptimizer& optimizer);

  const CallSite site_;
  const std::vector<RemoteStage>& stages_;
  Batch batch_;
  Schedule schedule_;
  std::vector<Piece> pieces_;
  std::size_t asked_ = 0;  // pieces whose gradients the stages have begun to take
  std::size_t taken_ = 0;  // pieces whose gradients all stages have taken
  std::shared_ptr<BatchEvents> events_;
  double window_ = 0;
};

}  // namespace caftan::pipeline
