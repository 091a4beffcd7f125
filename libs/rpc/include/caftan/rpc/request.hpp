/// What crosses between the typed calls and the worker that carries them: requests, replies, the peers of a call,
/// and `Responder`, which replies exactly once. The worker (`Caller`, caller.hpp) turns these into frames.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caftan/base/result.hpp"
#include "caftan/base/reused.hpp"
#include "caftan/base/task.hpp"
#include "caftan/rpc/ambient.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/frame.hpp"
#include "caftan/wire/type_name.hpp"

namespace caftan {

/// Options of one call: `worker.with({.timeout = 5s}).rpc_sync<&add>("worker1", 1, 2)`.
struct CallOptions {
  /// The call's time-out, >= 0; 0 = none of its own; unset = the worker's default. The time that is left of the
  /// surrounding call bounds it in any case.
  std::optional<base::Duration> timeout;
  /// If true, a call that finds limits.send_queue or limits.pending_calls reached fails with `overloaded` at once,
  /// instead of waiting for room as long as its time-out allows.
  bool fail_when_full = false;
};

namespace rpc {

class RRefHandle;
struct FunctionEntry;
struct SharedArguments;

/// The name and hash of a C++ type, as signatures and references carry it.
struct TypeKey {
  std::string_view name;
  std::uint64_t hash = 0;
};
/// Returns the key of T; its name lives as long as the program.
template <class T>
constexpr TypeKey type_key() noexcept {
  return {wire::type_name<T>(), wire::type_hash<T>()};
}

/// What a worker knows of a peer (or of itself). Made by the worker once per peer; lives as long as any Peer refers to
/// it.
class PeerRecord {
 public:
  virtual ~PeerRecord() = default;
  /// Returns the peer's id.
  virtual WorkerId id() const noexcept = 0;
  /// Returns the peer's name.
  virtual const std::string& name() const noexcept = 0;
};

}  // namespace rpc

/// Another member of the job, checked once and cheap to copy; accepted wherever a worker's name is.
class Peer {
 public:
  Peer() = default;
  explicit Peer(std::shared_ptr<const rpc::PeerRecord> record) : record_(std::move(record)) {}

  explicit operator bool() const noexcept { return record_ != nullptr; }
  /// Precondition of both: not empty.
  WorkerId id() const noexcept { return record_->id(); }
  /// Returns the peer's name; valid as long as this. Precondition: not empty.
  const std::string& name() const noexcept { return record_->name(); }
  const std::shared_ptr<const rpc::PeerRecord>& record() const noexcept { return record_; }

 private:
  std::shared_ptr<const rpc::PeerRecord> record_;
};

namespace rpc {
/// Decides whether a call that arrived may begin now, and notes when it begins. The worker implements it.
/// Threads: any.
class BeginGate {
 public:
  virtual ~BeginGate() = default;
  /// Returns false where every call may begin at once; cheap.
  virtual bool may_hold_back() const noexcept = 0;
  /// Returns whether the call has to wait. If so, `again` was called, and the task that it made runs later, once, and
  /// calls this method anew.
  /// @param order  if not null: calls with the same `order` begin in the order in which they first asked
  virtual bool hold_back(const void* order, const std::function<base::Task()>& again) = 0;
  /// A call with a deadline has its runner and its turn: it runs now, or is refused because its time is over. Called at
  /// most once. @param function  lives as long as the worker @param now  the time of the executor's clock
  virtual void begins(std::string_view function, base::TimePoint now) noexcept = 0;
  /// Returns whether the connection to the caller has ended, so that no reply reaches it.
  virtual bool is_caller_gone() const noexcept = 0;
  /// Returns when a call with a deadline arrived, by the executor's clock.
  virtual base::TimePoint arrived() const noexcept = 0;
};
}  // namespace rpc

/// What a called function may know of its call: give it `CallInfo&` or `const CallInfo&` as first parameter.
struct CallInfo {
  Peer caller;
  CallId call;
  base::TimePoint deadline = base::kNever;   ///< when the caller stops waiting
  std::shared_ptr<const CancelFlag> cancel;  ///< null = the caller cannot give up
  std::uint64_t trace = 0;
  unsigned depth = 0;  ///< calls that wait for this one, directly or not
  /// Grad mode of the caller's thread when it made the call; the function runs in the same mode (CALL-17).
  bool grad_mode = true;
  HeldObjects held;
  std::weak_ptr<void> autograd_context;  ///< set by the call hook
  std::uint64_t order_key = 0;    ///< key of this call in the order of summation (OrderKey); set by the call hook
  std::shared_ptr<void> running;  ///< set by the call hook; destroyed on the thread of the call when the code returns
  std::string_view function;      ///< registered name of the called function; lives as long as the worker
  std::shared_ptr<rpc::BeginGate> gate;  ///< says when the call may begin (SE-35); null = at once

  /// Returns whether the caller gave up.
  /// Threads: any.
  bool is_cancelled() const noexcept { return cancel && cancel->is_set(); }
};

namespace rpc {

/// References in the order of a manifest.
using RRefHandles = std::vector<std::shared_ptr<RRefHandle>>;

/// Which of the time-outs has set the time that a request has.
enum class TimeoutOf : std::uint8_t {
  call,         ///< CallOptions::timeout
  worker,       ///< the worker's default
  surrounding,  ///< the time that was left of the surrounding call
};

/// A request as it leaves: the worker adds ids, sections and the tensor table.
struct OutRequest {
  wire::FrameKind kind = wire::FrameKind::call;  ///< call, create, fetch, method or op
  base::Reused<wire::Bytes> body;
  base::Reused<std::vector<at::Tensor>> tensors;
  RRefHandles rrefs;  ///< the references inside body, by manifest index
  RRefId target;      ///< fetch and method: the object meant; create: the object whose method makes the value, or none
  HeldObjects held;   ///< for section `chain`
  base::TimePoint deadline = base::kNever;
  base::Duration timeout{0};                 ///< time from the begin of the request to `deadline`; 0 = none
  TimeoutOf timeout_of = TimeoutOf::call;    ///< whose time-out that is
  std::shared_ptr<const CancelFlag> cancel;  ///< flag of the call as part of which this one is made; null = none
  std::uint64_t trace = 0;
  unsigned depth = 0;  ///< for section `depth`
  /// Grad mode of the calling code, sent as section `grad_mode`; true for a fetch, which runs no code.
  bool grad_mode = true;
  wire::Bytes autograd;                ///< section `autograd`, written by the call hook; empty = none
  std::vector<std::uint8_t> recorded;  ///< one per tensor, 1 = recorded by autograd; empty = none
  std::uint64_t hook_ticket = 0;       ///< what CallHook::on_request returned; 0 when there is no hook
  std::shared_ptr<RRefHandle> keep;    ///< held until the reply
  std::string_view what;               ///< "math.add", for errors
  /// Keeps the text of `what` where neither the registry nor the program does.
  std::shared_ptr<const std::string> what_owner;
  std::shared_ptr<SharedArguments> shared;  ///< of a request of a group call, whose own `body` is empty; else null

  /// Returns the body, whether it is the request's own or that of a group call.
  wire::ByteView whole_body() const noexcept;
};

/// A reply as it leaves.
struct OutReply {
  base::Reused<wire::Bytes> body;
  base::Reused<std::vector<at::Tensor>> tensors;
  RRefHandles rrefs;
  /// The tensors belong to an object that lives on: memory that something else holds is sent as a copy.
  bool of_object = false;
  wire::Bytes autograd;
  std::vector<std::uint8_t> recorded;
};

/// A request or reply as it arrived. References are confirmed (RR-6) before it reaches user code.
struct InPayload {
  wire::ByteView body;
  /// Keeps `body`; null = `body` is valid only during the call that passes this payload.
  std::shared_ptr<const void> owner;
  base::Reused<std::vector<at::Tensor>> tensors;
  RRefHandles rrefs;
  wire::Bytes autograd;
  std::vector<std::uint8_t> recorded;
  /// The function that the prologue in `body` names, if it was looked up already. It lives as long as the worker.
  const FunctionEntry* entry = nullptr;

  /// Makes `body` outlive the call that handed it over.
  void keep_body();
  /// Lets go of everything.
  void drop() noexcept {
    body = {};
    owner.reset();
    tensors.leave();
    RRefHandles().swap(rrefs);
    wire::Bytes().swap(autograd);
    std::vector<std::uint8_t>().swap(recorded);
  }
};

/// Gets the reply of one request: `on_reply` is called exactly once, from any thread, also inside `submit`.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  /// Gets the reply or the error. Must not block: it may run on the thread that reads frames.
  virtual void on_reply(Result<InPayload> reply) = 0;
};

/// The token by which a worker finds a request again to give it up.
struct CallToken {
  CallId call;  ///< 0 = the request has ended already
  WorkerId peer;
  std::uint64_t session = 0;
  std::weak_ptr<base::ReadableSource> source{};  ///< what brings the reply; a thread that waits for it may read it
};

/// Takes the reply of a served call, which has exactly one. Implemented by the worker.
class ResponderSink {
 public:
  virtual ~ResponderSink() = default;
  /// Called exactly once. For a reply with tensors of an object (OutReply::of_object) this function runs on the
  /// object's strand, so it encodes the reply before it returns.
  /// Threads: any.
  virtual void answer(Result<OutReply>&& reply) noexcept = 0;
  /// Returns false where the caller wants no result: then none is encoded, and `answer` gets an empty reply for it.
  virtual bool wants_result() const noexcept { return true; }
};

/// The duty to reply to one request, exactly once. Move-only; dropped without a reply, it replies `broken_promise`.
class Responder {
 public:
  Responder() = default;
  explicit Responder(std::shared_ptr<ResponderSink> sink) : sink_(std::move(sink)) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&& other) noexcept;
  ~Responder() { drop(); }

  /// Returns whether there was no reply yet.
  bool is_open() const noexcept { return sink_ != nullptr; }
  /// As ResponderSink::wants_result. Precondition: is_open().
  bool wants_result() const noexcept { return sink_->wants_result(); }
  /// Replies; does nothing when there already was a reply.
  void answer(Result<OutReply>&& reply) noexcept;
  /// Replies with an error.
  void fail(Error error) noexcept { answer(Result<OutReply>(std::move(error))); }

 private:
  void drop() noexcept;

  std::shared_ptr<ResponderSink> sink_;
};

}  // namespace rpc
}  // namespace caftan
