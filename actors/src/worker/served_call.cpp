#include "worker/served_call.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "worker/call_frame.hpp"

namespace caftan::actors {

ServedCall::ServedCall(std::shared_ptr<ServedCalls> calls, std::shared_ptr<transport::Session> session,
                       wire::InFrame frame, const rpc::FunctionEntry* entry, bool one_way)
    : calls_(std::move(calls)),
      session_(std::move(session)),
      frame_(std::move(frame)),
      entry_(entry),
      one_way_(one_way),
      has_target_(frame_.sections.target.has_value()) {
  if (frame_.header.remaining_us != 0) {
    // A hostile remaining time must not overflow; more than ten years is never meant.
    constexpr std::uint64_t kMost = 10ULL * 365 * 24 * 3600 * 1'000'000;
    arrived_ = calls_->ports().executor().clock().now();
    deadline_ = arrived_ + std::chrono::microseconds(std::min<std::uint64_t>(frame_.header.remaining_us, kMost));
  }
  depth_ = read_depth(frame_);
}

ServedCall::~ServedCall() {
  // A call that was dropped without a reply, for example by an actor that was killed, gets its reply
  // from this destructor.
  if (!answered_) fail(calls_->ports().leaving().value_or(dropped()));
  calls_->gate().leave();
}

Error ServedCall::dropped() const {
  const std::string what = function_.empty() ? "the request" : "the call of " + std::string(function_);
  return Error(Errc::broken_promise, what + " was dropped without a reply");
}

void ServedCall::start(bool brief) {
  const auto self = shared_from_this();
  const auto go = [self, brief] {
    if (brief && !self->calls_->ports().executor().inside_reading_wait()) return self->begin();
    self->post_run(brief);
  };
  if (!frame_.manifest) return go();
  const auto received = std::static_pointer_cast<ReceivedRRefs>(frame_.manifest);
  when_confirmed(received, calls_->ports().executor(), deadline_, [self, received, brief](Result<void> confirmed) {
    if (confirmed) {
      self->post_run(brief);
    } else {
      self->creation_ = received->take_creation();
      self->fail(confirmed.error());
    }
  });
}

void ServedCall::when_references_are_confirmed(std::function<void(Result<void>)> done) {
  const auto received = std::static_pointer_cast<ReceivedRRefs>(frame_.manifest);
  when_confirmed(received, calls_->ports().executor(), deadline_, std::move(done));
}

void ServedCall::begin_in_order() {
  in_order_ = true;
  if (!one_way_ && has_references()) return start(false);  // it begins when these are confirmed
  if (!answered_) begin();
}

/// @param brief  the function never waits, so the call begins also while few permits to wait are left (CALL-16)
void ServedCall::post_run(bool brief) {
  calls_->ports().executor().post([self = shared_from_this(), brief] {
    if (brief) return self->begin();
    self->when_due([self] { self->begin(); });
  });
}

bool ServedCall::hold_back(const void* order, const std::function<base::Task()>& again) {
  net::ServeGate::Tasks ready;
  // A call that has a place in an object's order is not held back for CALL-16 too: the calls behind it in that order
  // would wait with it, and their callers may hold the very permits that it waits for.
  const auto asks_again = [&] {
    if (order) return again();
    return base::Task([self = shared_from_this(), task = again()]() mutable { self->when_due(std::move(task)); });
  };
  const bool may_begin = session_->writer().serve_gate().pass(place_, order, asks_again, ready);
  for (base::Task& task : ready) calls_->ports().executor().post(std::move(task));
  return !may_begin;
}

void ServedCall::begins(std::string_view function, base::TimePoint now) noexcept {
  begun_ = now;
  function_ = function;
}

void ServedCall::look_if_late() const {
  if (function_.empty()) return;
  const base::TimePoint now = calls_->ports().executor().clock().now();
  if (now < deadline_) return;
  calls_->log_late(function_, session_->peer().name,
                   {.late = now - deadline_, .waited = begun_ - arrived_, .took = now - begun_});
}

CallInfo ServedCall::make_info() {
  CallInfo info;
  if (auto peer = calls_->ports().find_peer(session_->peer().life.id)) info.caller = *std::move(peer);
  info.call = CallId{frame_.header.call};
  info.deadline = deadline_;
  if (!one_way_) info.cancel = cancelled_;
  info.trace = frame_.header.trace;
  info.depth = depth_;
  info.grad_mode = grad_mode_;
  if (!one_way_) info.gate = shared_from_this();  // SE-35 is about replies
  info.held = read_held(frame_);
  return info;
}

void ServedCall::begin() {
  if (frame_.manifest) creation_ = std::static_pointer_cast<ReceivedRRefs>(frame_.manifest)->take_creation();
  const auto target = read_target(frame_);
  if (!target) return fail(target.error());
  const auto grad_mode = read_grad_mode(frame_);
  if (!grad_mode) return fail(grad_mode.error());
  grad_mode_ = *grad_mode;
  rpc::InPayload payload;
  if (const auto decoded = decode_payload(frame_, calls_->limits(), payload); !decoded) return fail(decoded.error());
  payload.entry = entry_;
  const bool creates = frame_.header.kind == wire::FrameKind::create;
  const bool needs_object =
      frame_.header.kind == wire::FrameKind::fetch || frame_.header.kind == wire::FrameKind::method;
  if (creates != creation_.has_value() || (needs_object && !*target)) {
    return fail(Error(Errc::malformed_payload, "a request that does not name its object"));
  }
  if (*target) {
    payload_ = std::move(payload);
    const base::Executor::DeferWakeups deferred(
        calls_->ports().executor());  // this task ends right after the object's actor has got this call
    return calls_->rrefs().with_value(*target, shared_from_this());
  }
  // The payload's views show the frame of this call, so the payload keeps the call.
  payload.owner = std::shared_ptr<const void>(shared_from_this(), &frame_);
  if (creates) return create(nullptr, std::move(payload));
  rpc::Responder responder{std::shared_ptr<rpc::ResponderSink>(shared_from_this())};
  if (frame_.header.kind == wire::FrameKind::op) {
    calls_->dispatcher().op(std::move(payload), make_info(), std::move(responder));
  } else {
    calls_->dispatcher().call(std::move(payload), make_info(), std::move(responder));
  }
}

rpc::Use ServedCall::use() const noexcept {
  return frame_.header.kind == wire::FrameKind::fetch ? rpc::Use::fetch : rpc::Use::method;
}

void ServedCall::run(Result<std::shared_ptr<rpc::HostedObject>> value, base::Task done) {
  used_ = std::move(done);
  if (!value) return fail_without_object(value.error());
  rpc::InPayload payload = std::move(payload_);
  payload.owner = std::shared_ptr<const void>(shared_from_this(), &frame_);
  if (creation_) return create(std::move(*value), std::move(payload));
  rpc::Responder responder{std::shared_ptr<rpc::ResponderSink>(shared_from_this())};
  if (frame_.header.kind == wire::FrameKind::fetch) {
    calls_->dispatcher().fetch(std::move(*value), std::move(payload), make_info(), std::move(responder));
  } else {
    calls_->dispatcher().method(std::move(*value), std::move(payload), make_info(), std::move(responder));
  }
}

void ServedCall::create(std::shared_ptr<rpc::HostedObject> object, rpc::InPayload payload) {
  calls_->dispatcher()
      .create(std::move(object), std::move(payload), make_info(), creation_->rref)
      .then([self = shared_from_this()](Result<std::shared_ptr<rpc::HostedObject>> value) {
        Result<rpc::OutReply> reply = rpc::OutReply{};
        if (!value) reply = value.error();
        self->calls_->rrefs().set_value(self->creation_->rref, std::move(value));
        self->answer(std::move(reply));
      })
      .forget();
}

void ServedCall::fail(const Error& error) {
  if (creation_) calls_->rrefs().set_value(creation_->rref, error);
  answer(error);
}

void ServedCall::fail_without_object(const Error& error) {
  if (error.code() != Errc::not_permitted) return fail(error);
  // A caller that gave the call up may have let its reference go meanwhile: that is no try to do what is forbidden.
  const bool is_late = deadline_ != base::kNever && calls_->ports().executor().clock().now() >= deadline_;
  if (cancelled_->is_set() || is_late || session_->ended()) return fail(error);
  fail(calls_->permissions()->refuse_without_reference(make_info().caller, error));
}

void ServedCall::answer(Result<rpc::OutReply>&& reply) noexcept {
  if (answered_.exchange(true)) return;
  if (calls_->ports().has_ended()) return;  // the worker has ended: its executor and services may be gone
  if (one_way_) {
    if (!reply) calls_->log_failed(session_->peer().name, reply.error());
    session_->writer().count_ended(transport::OneWayCalls::room_for(frame_.body.size()));
  } else {
    look_if_late();
    send(std::move(reply));
  }
  if (!used_) return;
  const base::Executor::DeferWakeups deferred(calls_->ports().executor());
  std::exchange(used_, base::Task())();
}

void ServedCall::send(Result<rpc::OutReply>&& reply) {
  if (const auto sent = calls_->send_reply(session_, frame_.header.call, std::move(reply)); !sent) {
    (void)calls_->send_reply(session_, frame_.header.call, sent.error());
  }
}

}  // namespace caftan::actors
