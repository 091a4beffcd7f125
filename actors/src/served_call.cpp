#include "served_call.hpp"

#include <algorithm>
#include <utility>

namespace caftan::actors {

namespace {

/// A fetch, a method or a creation by a method, that waits for its object.
class ObjectJob final : public ValueJob {
 public:
  using Run = std::function<void(Result<std::shared_ptr<rpc::HostedObject>>, std::function<void()>)>;
  ObjectJob(rpc::Use use, Run run) : use_(use), run_(std::move(run)) {}
  rpc::Use use() const noexcept override { return use_; }
  void run(Result<std::shared_ptr<rpc::HostedObject>> value, std::function<void()> done) override {
    run_(std::move(value), std::move(done));
  }

 private:
  const rpc::Use use_;
  const Run run_;
};

}  // namespace

ServedCall::ServedCall(std::shared_ptr<WorkerCore> core, std::shared_ptr<transport::Session> session,
                       transport::InFrame frame)
    : core_(std::move(core)), session_(std::move(session)), frame_(std::move(frame)) {
  if (frame_.header.remaining_us != 0) {
    // A hostile remaining time must not overflow; nobody means more than ten years.
    constexpr std::uint64_t kMost = 10ULL * 365 * 24 * 3600 * 1'000'000;
    arrived_ = core_->executor().clock().now();
    deadline_ = arrived_ + std::chrono::microseconds(std::min<std::uint64_t>(frame_.header.remaining_us, kMost));
  }
  if (const auto depth = wire::find_section(frame_.sections, wire::SectionType::depth); depth && *depth) {
    if ((*depth)->size() == 1) depth_ = std::to_integer<unsigned>((*depth)->front());
  }
}

ServedCall::~ServedCall() {
  // A call that was dropped without an answer, for example by an actor that was killed, is answered here.
  if (!answered_) fail(core_->leaving().value_or(Error(Errc::broken_promise, "the request was dropped")));
  core_->served_call_ended(*this);
}

void ServedCall::start(bool brief) {
  const auto self = shared_from_this();
  const auto go = [self, brief] {
    if (brief && !self->core_->executor().reads_for_wait()) return self->run();
    self->post_run(brief);
  };
  if (!frame_.manifest) return go();
  const auto received = std::static_pointer_cast<ReceivedRRefs>(frame_.manifest);
  core_->rref_host().when_confirmed(received, deadline_, [self, received, brief](Result<void> confirmed) {
    if (confirmed) {
      self->post_run(brief);
    } else {
      self->creation_ = received->take_creation();
      self->fail(confirmed.error());
    }
  });
}

/// @param brief  it needs no wait: it is not held back for others (CALL-16)
void ServedCall::post_run(bool brief) {
  core_->executor().post([self = shared_from_this(), brief] {
    if (brief) return self->run();
    self->when_due([self] { self->run(); });
  });
}

bool ServedCall::hold_back(const void* order, const std::function<Task()>& again) {
  net::ServeGate::Tasks ready;
  // A call that has a place in an object's order is not held back for CALL-16 too: the calls behind it in that order
  // would wait with it, and their callers may hold the very permits that it waits for.
  const auto asks_again = [&] {
    if (order) return again();
    return Task([self = shared_from_this(), task = again()]() mutable { self->when_due(std::move(task)); });
  };
  const bool may_begin = session_->serve_gate().pass(place_, order, asks_again, ready);
  for (Task& task : ready) core_->executor().post(std::move(task));
  return !may_begin;
}

void ServedCall::begins(std::string_view function, TimePoint now) noexcept {
  begun_ = now;
  function_ = function;
}

void ServedCall::look_if_late() const {
  if (function_.empty()) return;
  const TimePoint now = core_->executor().clock().now();
  if (now < deadline_) return;
  core_->on_late_answer(function_, session_->peer().id, now - deadline_, begun_ - arrived_, now - begun_);
}

CallInfo ServedCall::make_info() {
  CallInfo info;
  if (auto peer = core_->find_peer(session_->peer().id)) info.caller = *std::move(peer);
  info.call = CallId{frame_.header.call};
  info.deadline = deadline_;
  info.cancel = cancelled_;
  info.trace = frame_.header.trace;
  info.depth = depth_;
  info.grad_mode = grad_mode_;
  info.gate = shared_from_this();
  if (const auto chain = wire::find_section(frame_.sections, wire::SectionType::chain); chain && *chain) {
    if (auto held = rpc::decode_held(**chain)) info.held = std::move(*held);
  }
  return info;
}

Result<RRefId> ServedCall::read_target() const {
  const auto target = wire::find_section(frame_.sections, wire::SectionType::target);
  if (!target) return target.error();
  return *target ? wire::decode<RRefId>(**target) : RRefId{};
}

/// Returns whether the caller's grad mode is on.
Result<bool> ServedCall::read_grad_mode() const {
  const auto said = wire::find_section(frame_.sections, wire::SectionType::grad_mode);
  if (!said) return said.error();
  if (!*said) return true;
  if ((*said)->size() == 1 && (*said)->front() == std::byte{0}) return false;
  return Error(Errc::malformed_payload, "a section grad_mode that does not say that grad mode is off");
}

void ServedCall::run() {
  if (frame_.manifest) creation_ = std::static_pointer_cast<ReceivedRRefs>(frame_.manifest)->take_creation();
  const auto target = read_target();
  if (!target) return fail(target.error());
  const auto grad_mode = read_grad_mode();
  if (!grad_mode) return fail(grad_mode.error());
  grad_mode_ = *grad_mode;
  rpc::InPayload payload;
  if (const auto decoded = core_->decode_payload(frame_, payload); !decoded) return fail(decoded.error());
  // The views stay as long as anyone needs them.
  payload.owner = std::shared_ptr<const void>(shared_from_this(), &frame_);
  const bool creates = frame_.header.kind == wire::FrameKind::create;
  const bool needs_object =
      frame_.header.kind == wire::FrameKind::fetch || frame_.header.kind == wire::FrameKind::method;
  if (creates != creation_.has_value() || (needs_object && !*target)) {
    return fail(Error(Errc::malformed_payload, "a request that does not name its object"));
  }
  if (creates && !*target) return create(nullptr, std::move(payload));
  if (*target) return run_on_object(*target, std::move(payload));
  rpc::Responder responder{std::shared_ptr<rpc::ResponderSink>(shared_from_this())};
  if (frame_.header.kind == wire::FrameKind::op) {
    core_->dispatcher().op(std::move(payload), make_info(), std::move(responder));
  } else {
    core_->dispatcher().call(std::move(payload), make_info(), std::move(responder));
  }
}

void ServedCall::run_on_object(const RRefId& target, rpc::InPayload payload) {
  const auto use = frame_.header.kind == wire::FrameKind::fetch ? rpc::Use::fetch : rpc::Use::method;
  auto held = std::make_shared<rpc::InPayload>(std::move(payload));
  const Executor::QuietPosts quiet(core_->executor());  // the way to the object is this task's last act
  core_->rref_host().with_value(
      target, std::make_shared<ObjectJob>(use, [self = shared_from_this(), held](
                                                   Result<std::shared_ptr<rpc::HostedObject>> value,
                                                   std::function<void()> done) {
        self->used_ = std::move(done);
        if (!value) return self->fail(value.error());
        if (self->creation_) return self->create(std::move(*value), std::move(*held));
        rpc::Responder responder{std::shared_ptr<rpc::ResponderSink>(self)};
        if (self->frame_.header.kind == wire::FrameKind::fetch) {
          self->core_->dispatcher().fetch(std::move(*value), std::move(*held), self->make_info(), std::move(responder));
        } else {
          self->core_->dispatcher().method(std::move(*value), std::move(*held), self->make_info(),
                                           std::move(responder));
        }
      }));
}

void ServedCall::create(std::shared_ptr<rpc::HostedObject> object, rpc::InPayload payload) {
  core_->dispatcher()
      .create(std::move(object), std::move(payload), make_info(), creation_->rref)
      .then([self = shared_from_this()](Result<std::shared_ptr<rpc::HostedObject>> value) {
        Result<rpc::OutReply> reply = rpc::OutReply{};
        if (!value) reply = value.error();
        self->core_->rref_host().set_value(self->creation_->rref, std::move(value));
        self->answer(std::move(reply));
      })
      .forget();
}

void ServedCall::fail(const Error& error) {
  if (creation_) core_->rref_host().set_value(creation_->rref, error);
  answer(error);
}

void ServedCall::answer(Result<rpc::OutReply>&& reply) noexcept {
  if (answered_.exchange(true)) return;
  if (core_->has_ended()) return;  // the executor and the services of the worker may be gone
  look_if_late();
  if (const auto sent = core_->send_response(session_, frame_.header.call, std::move(reply)); !sent) {
    (void)core_->send_response(session_, frame_.header.call, sent.error());
  }
  if (!used_) return;
  const Executor::QuietPosts quiet(core_->executor());
  std::exchange(used_, nullptr)();
}

}  // namespace caftan::actors
