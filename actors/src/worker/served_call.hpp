/// One call that a peer made here, from its frame to its reply.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "caftan/base/wait_permit.hpp"
#include "caftan/net/internal/serve_gate.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "worker/served_calls.hpp"

namespace caftan::actors {

class ServedCall final : public rpc::ResponderSink,
                         public rpc::BeginGate,
                         public ValueJob,
                         public std::enable_shared_from_this<ServedCall> {
 public:
  /// @param entry  the function that is called, if it is known already
  /// @param one_way  the caller wants no reply
  ServedCall(std::shared_ptr<ServedCalls> calls, std::shared_ptr<transport::Session> session, wire::InFrame frame,
             const rpc::FunctionEntry* entry, bool one_way);
  ~ServedCall() override;

  /// Runs the call once its references are confirmed (RR-6): on this thread if the request has no references, the
  /// function is `brief` and the thread does not read for a wait; otherwise on a runner.
  void start(bool brief);
  /// As start, for a call that a TellQueue begins: on this thread. A one-way call needs its references confirmed first.
  void begin_in_order();
  /// Calls `done` as rref_frames' when_confirmed. Precondition: has_references().
  void when_references_are_confirmed(std::function<void(Result<void>)> done);
  /// Ends the call with `error`; it does not begin.
  void refuse(const Error& error) { fail(error); }

  /// Returns whether the caller wants no reply (TL-1).
  bool is_one_way() const noexcept { return one_way_; }
  bool has_references() const noexcept { return frame_.manifest != nullptr; }
  /// Returns whether the call is about an object.
  bool has_target() const noexcept { return has_target_; }

  bool wants_result() const noexcept override { return !one_way_; }
  void answer(Result<rpc::OutReply>&& reply) noexcept override;
  void cancel() noexcept { cancelled_->set(); }
  bool may_hold_back() const noexcept override { return session_->writer().serve_gate().is_busy(); }
  bool hold_back(const void* order, const std::function<base::Task()>& again) override;
  void begins(std::string_view function, base::TimePoint now) noexcept override;
  bool is_caller_gone() const noexcept override { return session_->ended(); }
  base::TimePoint arrived() const noexcept override { return arrived_; }

  // As the job of a fetch, a method or a creation by a method, which waits for its object.
  rpc::Use use() const noexcept override;
  WorkerLife caller() const noexcept override { return session_->peer().life; }
  void run(Result<std::shared_ptr<rpc::HostedObject>> value, base::Task done) override;
  bool keeps_order() const noexcept override { return one_way_ || in_order_; }

  std::uint64_t key() const noexcept { return key_of(*session_, frame_.header.call); }
  static std::uint64_t key_of(const transport::Session& session, std::uint64_t call) noexcept {
    return mix64(call) ^ mix64(session.connection() + 1) ^ mix64(session.peer().life.incarnation.value);
  }

 private:
  void post_run(bool brief);
  /// Runs `code`, later if the permits to wait that are left are kept for calls nested deeper (CALL-16).
  template <class F>
  void when_due(F&& code) {
    base::RunnerLimit* const limit = base::RunnerLimit::current();
    if (limit && !limit->may_begin(depth_)) return limit->hold_call(depth_, base::Task(std::forward<F>(code)));
    code();
  }
  void begin();
  void create(std::shared_ptr<rpc::HostedObject> object, rpc::InPayload payload);
  void fail(const Error& error);
  /// Ends a call about an object that it cannot have.
  void fail_without_object(const Error& error);
  void send(Result<rpc::OutReply>&& reply);
  void look_if_late() const;
  Error dropped() const;
  CallInfo make_info();

  const std::shared_ptr<ServedCalls> calls_;  // keeps the worker
  const std::shared_ptr<transport::Session> session_;
  wire::InFrame frame_;
  const rpc::FunctionEntry* const entry_;  // null: to be looked for when the call begins
  rpc::InPayload payload_;                 // while the call waits for its object
  // Shared: calls that the called function made and did not wait for may use the flag after this ServedCall is gone.
  const std::shared_ptr<CancelFlag> cancelled_ = std::make_shared<CancelFlag>();
  net::ServeGate::Place place_;  // used by one thread at a time: only the thread that begins the call asks the gate
  base::TimePoint deadline_ = base::kNever;
  // Of calls with a deadline:
  base::TimePoint arrived_{};
  base::TimePoint begun_{};
  std::string_view function_;  // empty: it has not begun
  unsigned depth_ = 0;
  const bool one_way_;
  const bool has_target_;
  bool in_order_ = false;  // it came behind one-way calls of methods that had not begun
  bool grad_mode_ = true;
  std::optional<rpc::Creation> creation_;
  base::Task used_;  // reports to the value's actor that this call no longer uses the value
  std::atomic<bool> answered_{false};
};

}  // namespace caftan::actors
