/// The two ends of a recorded message in torch's graphs: `SendFunction` where the tensors left, `RecvFunction` where
/// they arrived. Start with `record_sent` and `record_received`; `Engine` (engine.hpp) walks over both. Both list the
/// recorded tensors of the message in the order of its tensor table, so entry i means the same tensor at both ends.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "caftan/base/ids.hpp"
#include "caftan/base/result.hpp"

namespace caftan::autograd {

/// What both ends know of one recorded message.
struct RecordedMessage {
  ContextId context;
  AutogradMessageId message;
  WorkerId peer;  ///< the other end
  /// A key that depends on the program's structure alone and is equal at both ends: a hash of the key of the call whose
  /// code sent the message, the ordinal of the send in that call, and whether it was a request or a reply.
  std::uint64_t order_key = 0;
};

/// The nodes that the code of one called function recorded on one thread, from its start to its reply, or the code that
/// made the context. Within a span torch's numbers say which node was recorded first; across spans they say only which
/// code happened to run first. Register one for each function that runs on one thread; an asynchronous function, whose
/// parts run on any threads, has none.
struct CodeSpan {
  /// Returns the span of what the calling thread records from now on.
  static CodeSpan begin(std::uint64_t key);
  /// Ends the span; call it on the thread that called `begin`. A span without an end contains all that its thread
  /// records later.
  void end();

  /// The key of the function's call (OrderKey::key), which depends on the structure of the program alone.
  std::uint64_t key = 0;
  std::uint64_t thread_id = 0;  ///< in torch's numbering
  std::uint64_t first = 0;      ///< sequence numbers [first, last)
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
};

/// The sender's end: where the gradients of the sent tensors enter this worker's graph. No node of torch's graph points
/// at it, so it is no torch node; it has what the engine needs to treat it as a producer of gradients. Immutable;
/// threads: any.
class SendFunction {
 public:
  SendFunction(const RecordedMessage& message, std::vector<torch::autograd::Edge> next_edges);
  SendFunction(const SendFunction&) = delete;
  SendFunction& operator=(const SendFunction&) = delete;

  const RecordedMessage& message() const noexcept { return message_; }
  /// One edge per recorded tensor, all valid. An edge's node holds the metadata of the tensor that was sent.
  std::span<const torch::autograd::Edge> next_edges() const noexcept { return next_edges_; }
  /// Place in the order of what the recording thread recorded, as the sequence number of torch's nodes.
  std::uint64_t sequence_nr() const noexcept { return sequence_nr_; }
  /// The thread that recorded the message, in torch's numbering.
  std::uint64_t thread_id() const noexcept { return thread_id_; }

  /// Checks what a peer sends as the gradients of this message (libtorch would silently sum, cast or accept them).
  /// A gradient may be undefined; else it has exactly the sizes, the dtype and the device of the tensor that was sent,
  /// and its layout; dense for sparse COO and the other way round, as in libtorch (embeddings, sums).
  /// Errors: malformed_payload, naming the tensor and what differs.
  Result<void> check(std::span<const at::Tensor> gradients) const;

 private:
  const RecordedMessage message_;
  const std::vector<torch::autograd::Edge> next_edges_;
  const std::uint64_t sequence_nr_;
  const std::uint64_t thread_id_;
};

/// The receiver's end: a node of torch's graph and the grad_fn of each recorded tensor of the message. It has no next
/// edges: what arrives there belongs to the peer. Run by other code than an Engine, it throws RpcException
/// (unsupported): "use context.backward(roots): this graph crosses workers" (DA-15).
class RecvFunction;

/// Returns the message whose tensors `function` produced. Threads: any.
const RecordedMessage& message_of(const RecvFunction& function) noexcept;

/// Records `tensors` as sent. Which ones is decided here alone (DA-18): those that require grad, of a floating or
/// complex dtype, while grad mode is on.
/// @param tensors   of the message's table, undefined ones allowed; not kept, only their gradient edges are
/// @param recorded  gets one byte per tensor: 1 = recorded; left empty when none is
/// Returns the node to register under message.message (DA-2), null when nothing is recorded.
/// Threads: any; about a microsecond per message.
std::shared_ptr<SendFunction> record_sent(const RecordedMessage& message, std::span<const at::Tensor> tensors,
                                          std::vector<std::uint8_t>& recorded);

/// Makes the recorded ones among `tensors` results of a new RecvFunction. Whether grad mode is on here does not matter.
/// @param tensors   of the message's table, as the codec built them: without history. Recorded ones over one storage
///                  must share a version counter already (DA-20; TensorLayout::build does that).
/// @param recorded  empty, or one byte per tensor, 1 = the sender has recorded it
/// Returns the node, null when no tensor is recorded.
/// Errors: malformed_payload (recorded has another length; a recorded tensor is undefined or of a dtype without
///         gradients); nothing is changed then.
/// Threads: any.
Result<std::shared_ptr<RecvFunction>> record_received(const RecordedMessage& message, std::span<at::Tensor> tensors,
                                                      std::span<const std::uint8_t> recorded);

/// Makes those of `tensors` that need gradients and have no history results of one node that refuses gradients (DA-21):
/// backward through one of them, by an Engine or by torch, fails with `reason`. Undefined gradients pass.
/// @param tensors  as the codec built them, with the recorded ones recorded already; undefined ones allowed
/// Threads: any.
void refuse_gradients(std::span<at::Tensor> tensors, const Error& reason);

}  // namespace caftan::autograd
