/// `LeafExchange`: leaves whose gradients a pass gives away, and books what comes back for them: averages over
/// replicas. While nodes still run the first gradients are on their way. Rules: docs/protocols/replicated.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::autograd {

/// One pass at this worker, as an exchange sees it.
class LeafPass {
 public:
  /// Receives each leaf's gradient, undefined where it has none, or why there are none.
  using Returned = std::function<void(Result<std::vector<at::Tensor>>)>;

  virtual ~LeafPass() = default;
  /// A leaf has its gradient: its place in LeafExchange::leaves, once for each. Must not block.
  /// Errors: they fail the pass. Threads: that of the run.
  virtual Result<void> on_gradient(std::size_t leaf, const at::Tensor& gradient) = 0;
  /// All nodes of this worker have run. Calls `returned` once, on any thread, also inside this call. Must not block.
  virtual void finish(Returned returned) = 0;
  /// The pass has failed here before it finished. Called at most once, and nothing after it.
  virtual void abandon(const Error& reason) noexcept = 0;
};

/// Leaves whose gradients are exchanged. Threads: any.
class LeafExchange {
 public:
  virtual ~LeafExchange() = default;
  /// Returns the leaves, always the same.
  virtual const std::vector<at::Tensor>& leaves() const noexcept = 0;
  /// A pass begins to run here. Errors: they fail the pass.
  virtual Result<std::unique_ptr<LeafPass>> begin() = 0;
};

}  // namespace caftan::autograd
