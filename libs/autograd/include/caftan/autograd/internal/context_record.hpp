/// `ContextRecord`: what one worker knows of one autograd context: the messages it recorded, the gradients that arrived
/// for them, those of its leaves, and how much of the context is still in use here. User threads record into it while
/// passes run, so it has the context's one lock. Made and found by `ContextHost`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "caftan/autograd/context_info.hpp"
#include "caftan/autograd/gradient_book.hpp"
#include "caftan/autograd/internal/leaf_exchange.hpp"
#include "caftan/autograd/internal/nodes.hpp"
#include "caftan/autograd/internal/recorded_messages.hpp"
#include "caftan/base/clock.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/strand.hpp"

namespace caftan::rpc {
class Caller;
}

namespace caftan::autograd {

class ContextHost;
class ContextRecord;

/// How many lower bits of a message's number count the messages of one context. The upper bits are the context's place
/// at the worker that made the message, by which that worker finds the context, and in it S(m).
constexpr unsigned kMessageBits = 24;  // so one worker can send 2^24 messages in one context
/// Returns the place of the message's context at the worker that made the message.
constexpr std::uint64_t place_of(const AutogradMessageId& message) noexcept { return message.number >> kMessageBits; }

/// Threads: any, all methods.
class ContextRecord final : public RecordedMessages, public std::enable_shared_from_this<ContextRecord> {
 public:
  /// @param place  the number of this context among this worker's contexts, used once in the worker's life
  ContextRecord(ContextHost& host, std::weak_ptr<rpc::Caller> caller, ContextId id, WorkerLife self,
                std::uint64_t place, base::TimePoint born)
      : host_(host), caller_(std::move(caller)), id_(id), self_(self), place_(place), born_(born) {}

  ContextId id() const noexcept { return id_; }
  std::uint64_t place() const noexcept { return place_; }
  /// Returns whether this worker made the context.
  bool is_home() const noexcept { return id_.maker() == self_; }
  base::TimePoint born() const noexcept { return born_; }
  const std::weak_ptr<rpc::Caller>& caller() const noexcept { return caller_; }
  /// Valid while `caller` is.
  ContextHost& host() const noexcept { return host_; }

  // Use: calls and steps of the context that are under way. The context's release waits for them (DA-19).
  /// Sets the depth (Ambient::depth) of the code that owns the context's handle: code that runs deeper was called by
  /// it. Call it before the first use.
  void set_depth(unsigned depth) noexcept { depth_ = depth; }
  /// Begins a call or step in the context, which holds back its release until `end_use`.
  /// @param depth  Ambient::depth of the code that begins it: code that the handle's own code has called may go on
  ///   after the end of the handle, for as long as a use of the handle's own code waits for it
  /// Errors: context_released.
  Result<void> begin_use(unsigned depth);
  /// Ends what `begin_use` began.
  void end_use() noexcept;
  /// The handle is gone: no use of its own code begins any more. The record calls its host when the last use has ended.
  void close() noexcept;
  /// The context is over: forgets all nodes and gradients.
  void end() noexcept;
  /// Returns whether `end` was called.
  bool is_over() const;
  /// Calls `over` once the context is over: here if it is so already, else where it ends. It must not block or throw.
  void when_over(std::function<void()> over);
  /// Errors: context_released.
  Result<void> check_open() const;

  // Recording.
  /// Returns the id of a message that is about to be recorded as sent. Errors: limit_exceeded.
  Result<AutogradMessageId> next_message();
  /// Registers S(m), before its frame is handed over (DA-2). The part of the graph behind S(m) runs in turn with the
  /// object whose method runs here.
  /// @param bytes  of the recorded tensors.
  /// Errors: context_released.
  Result<void> add_sent(std::shared_ptr<SendFunction> function, WorkerLife to, std::uint64_t bytes);
  /// The frame of S(m) was not sent: forgets the node.
  void forget_sent(AutogradMessageId message) noexcept;
  /// Errors: context_released.
  Result<void> add_received(WorkerLife from, std::uint64_t bytes);
  /// Returns the order key of the next function bound to the context from outside it.
  std::uint64_t next_binding() noexcept;
  /// Code of this context begins to run here, on the calling thread.
  /// @param key  of the call that runs the code, 0 = code of the context's creator
  void begin_span(std::uint64_t key);
  /// The code of begin_span has returned. Threads: that of begin_span.
  void end_span(std::uint64_t key);
  /// Lets every later pass of the context exchange the gradients of these leaves here. Adding it twice changes nothing.
  /// Errors: context_released.
  Result<void> add_exchange(std::shared_ptr<LeafExchange> exchange);
  /// Notes that a frame of this context came from, or goes to, `worker`.
  void met(WorkerId worker);

  // Passes.
  std::optional<WorkerLife> receiver_of(AutogradMessageId message) const override;
  std::vector<AutogradMessageId> sends() const override;
  /// Returns S(m), null if it is not (or no longer) here.
  std::shared_ptr<const SendFunction> send_function(AutogradMessageId message) const;
  /// Returns the strands whose turns are needed to read the graph behind these messages: each once, in one order
  /// everywhere.
  /// @param first  a further strand, null = none
  std::vector<std::shared_ptr<rpc::Strand>> strands_of(const std::vector<AutogradMessageId>& messages,
                                                       const std::shared_ptr<rpc::Strand>& first) const;
  /// Returns the exchanges in the order in which they were added.
  std::vector<std::shared_ptr<LeafExchange>> exchanges() const;
  /// Returns the spans that have recorded here, or still run.
  std::vector<CodeSpan> spans() const;
  /// Keeps the gradients that arrived for S(message) until a run of the pass takes them (DA-25). A second delivery for
  /// the same message of a pass is dropped: the pass fails by it (DA-6).
  /// @param gradients  one per recorded tensor, or why they cannot be used
  void deliver(PassNumber pass, const AutogradMessageId& message, Result<std::vector<at::Tensor>> gradients);
  /// Returns what was delivered for S(message), once. Errors: the error that was delivered in place of gradients;
  /// context_released (nothing was delivered, or it was taken or forgotten).
  Result<std::vector<at::Tensor>> take_delivered(PassNumber pass, const AutogradMessageId& message);
  /// Forgets the gradients that were delivered for this pass or an earlier one and that no run has taken.
  void forget_delivered(PassNumber pass);
  /// Keeps the gradients of a pass until its outcome is known.
  void stage(PassNumber pass, GradientBook&& book);
  /// Merges or drops the staged gradients of the passes that are decided (DA-8).
  /// Returns whether anything was new. Errors: limit_exceeded (no memory to add gradients).
  Result<bool> learn(const DecidedSet& decided);
  /// Returns the decisions that are known here.
  DecidedSet decided() const;
  /// Forgets the staged gradients of a pass that failed.
  void drop(PassNumber pass);

  /// Returns the gradients of this worker's leaves, as they are now: later passes do not change the returned tensors.
  /// Errors: context_released.
  Result<GradientBook> gradients() const;
  /// Fills in what this record knows: all fields but the names, the age and what runs.
  /// @param workers  gets the ids of the workers with which frames of this context were exchanged
  ContextInfo info(std::set<WorkerId>& workers) const;

 private:
  enum class Phase : std::uint8_t {
    open,
    closing,  ///< the handle is gone; code that the handle's own code has called may go on
    over,     ///< nodes and gradients are forgotten
  };
  struct Sent {
    std::shared_ptr<const SendFunction> function;
    WorkerLife to;
    std::shared_ptr<rpc::Strand> strand;
    std::uint64_t bytes;
  };

  struct HeldGradients {
    using Delivered = std::map<std::pair<PassNumber, AutogradMessageId>, Result<std::vector<at::Tensor>>>;
    Delivered delivered;                        // gradients that arrived for S nodes, until a run takes them
    std::map<PassNumber, GradientBook> staged;  // gradients of leaves, until their pass is decided
    GradientBook book;                          // of leaves
    std::vector<std::shared_ptr<LeafExchange>> exchanges;
  };

  ContextHost& host_;
  const std::weak_ptr<rpc::Caller> caller_;
  const ContextId id_;
  const WorkerLife self_;
  const std::uint64_t place_;
  const base::TimePoint born_;
  std::atomic<std::uint64_t> next_message_{0};
  std::atomic<std::uint64_t> next_binding_{0};

  mutable base::Mutex mutex_;
  // The messages that this worker has sent, by the number of the message.
  std::unordered_map<std::uint64_t, Sent> sent_ CAFTAN_GUARDED_BY(mutex_);
  // The spans that have recorded, or still run, by key.
  std::unordered_map<std::uint64_t, CodeSpan> spans_ CAFTAN_GUARDED_BY(mutex_);
  std::size_t received_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t recorded_bytes_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::set<WorkerId> met_ CAFTAN_GUARDED_BY(mutex_);
  DecidedSet decided_ CAFTAN_GUARDED_BY(mutex_);
  HeldGradients gradients_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> when_over_ CAFTAN_GUARDED_BY(mutex_);
  std::size_t uses_ CAFTAN_GUARDED_BY(mutex_) = 0;
  Phase phase_ CAFTAN_GUARDED_BY(mutex_) = Phase::open;

  unsigned depth_ = 0;  // set when the context is made, constant afterwards
};

/// Returns whether a step can take its gradients from the context. Errors: context_released, bad_arguments (no backward
/// pass of the context has succeeded, or its last one failed).
Result<void> check_has_gradients(const ContextRecord& context);

}  // namespace caftan::autograd
