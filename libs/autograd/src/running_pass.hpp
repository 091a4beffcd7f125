/// `RunningPass`: the passes that the calling thread is in the middle of running, innermost first. A checkpointed
/// segment books its gradients into the innermost pass, and a backward pass that would wait for one of these passes is
/// refused (DA-14).
#pragma once

#include <ATen/core/Tensor.h>

#include "caftan/base/ids.hpp"

namespace caftan::autograd {

/// Lives on the stack of the thread that runs a slice.
class RunningPass {
 public:
  explicit RunningPass(const ContextId& context) noexcept;
  virtual ~RunningPass() { current_ = outer_; }
  RunningPass(const RunningPass&) = delete;
  RunningPass& operator=(const RunningPass&) = delete;

  /// Adds a gradient that the running node has computed besides its return values.
  virtual void book(const at::Tensor& leaf, at::Tensor&& gradient) = 0;

  const ContextId& context() const noexcept { return context_; }
  /// Returns whether the node in work belongs to this pass, not to a stock backward that was started inside of a node.
  bool is_innermost() const noexcept;
  const RunningPass* outer() const noexcept { return outer_; }
  /// Returns the innermost pass that this thread runs, null if it runs none.
  static RunningPass* current() noexcept { return current_; }

 private:
  static thread_local constinit RunningPass* current_;

  const ContextId context_;
  RunningPass* const outer_;
  const int stock_task_;  ///< torch's number of the stock backward pass inside of which this pass runs, -1 for none
};

}  // namespace caftan::autograd
