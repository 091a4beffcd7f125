/// `checkpoint`: trades time for memory. What a segment of the forward pass would save for backward is dropped, and the
/// segment is run again when a backward pass comes to it. The gradients it finds there go where the pass books: into
/// the context's gradients in `context.backward`, into `.grad` in a stock backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace caftan::autograd {

/// A function of its arguments and of leaves (parameters), without other effects: it runs twice. It may not use tensors
/// with a history except its arguments, and it may not call other workers.
using Segment = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// How a segment is run again.
struct CheckpointOptions {
  /// Run the second time from the state that torch's CPU generator had the first time, so that dropout is the same, and
  /// put the generator back afterwards. Not needed where random numbers come from keys.
  bool preserve_random_state = true;
};

/// Runs `segment` and returns its results, recorded as one node if grad mode is on and an input requires grad; else the
/// segment is run as if it stood there by itself.
/// Throws what `segment` throws. In backward a pass fails with unsupported as its cause where the second run's graph
/// comes from another worker, and with what torch says where an input was changed in place or the node's inputs are
/// freed already.
/// Threads: any.
/// Source: torch.utils.checkpoint.checkpoint(use_reentrant=True). Difference: parameters alone make the segment
/// differentiable, only then without saving memory.
std::vector<at::Tensor> checkpoint(Segment segment, const std::vector<at::Tensor>& inputs,
                                   const CheckpointOptions& options = {});

/// Returns whether the calling thread runs a segment: calls are `unsupported` meanwhile, because a second run would
/// repeat them, unrecorded.
bool is_inside_checkpoint() noexcept;

}  // namespace caftan::autograd
