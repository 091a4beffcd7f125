/// Backward passes from a tensor that stays where it is: `autograd::backward(context, loss)` with an RRef<at::Tensor>.
/// The owner of the tensor starts the pass; nothing is fetched.
#pragma once

#include "caftan/autograd/context.hpp"
#include "caftan/rpc/rref.hpp"

namespace caftan {
class Registry;
}

namespace caftan::autograd {

/// Runs a backward pass of `context` from the tensor that `root` refers to, which must be a scalar, and waits.
/// @param options  without gradients
/// Errors (thrown): those of ContextView::backward, here or at the owner; those of a call to the owner, and why the
///   tensor will never be there; bad_arguments (gradients are given).
/// Threads: any. Blocks, and gives the turn of the running object back meanwhile.
/// Source: torch.distributed.rpc.RRef.backward. Differences: always in a context (at the owner, `local_value()` has a
///   backward of its own into `.grad`), and no thread of the owner waits for the pass.
inline void backward(const ContextView& context, const RRef<at::Tensor>& root, const BackwardOptions& options = {});
inline Result<void> try_backward(const ContextView& context, const RRef<at::Tensor>& root,
                                 const BackwardOptions& options = {});
/// As backward, without waiting for the pass. At the owner of the root it first waits for the root's value, as
/// `RRef::local_value` does, and may give the turn of the running object back although the value is there (CALL-7).
Future<void> backward_async(const ContextView& context, const RRef<at::Tensor>& root,
                            const BackwardOptions& options = {});

inline Result<void> try_backward(const ContextView& context, const RRef<at::Tensor>& root,
                                 const BackwardOptions& options) {
  return backward_async(context, root, options).result();
}
inline void backward(const ContextView& context, const RRef<at::Tensor>& root, const BackwardOptions& options) {
  try_backward(context, root, options).value();
}

/// Registers the function by which a pass is started at the owner of its root; every worker registers it.
void add_rref_backward(Registry& registry);

}  // namespace caftan::autograd
