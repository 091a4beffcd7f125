#include "worker/outgoing_calls.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "caftan/base/internal/rounded_duration.hpp"
#include "caftan/base/wait_permit.hpp"
#include "caftan/net/internal/handshake.hpp"
#include "caftan/rpc/call_hook.hpp"
#include "caftan/rpc/strand.hpp"
#include "worker/call_frame.hpp"

namespace caftan::actors {

using transport::Session;
using wire::InFrame;

/// Delivers the single outcome of a request to its caller.
class OutgoingCalls::Pending final : public transport::ReplySink, public CancelFlag::Part {
 public:
  Pending(std::shared_ptr<OutgoingCalls> calls, std::shared_ptr<rpc::ReplySink> sink, std::shared_ptr<Session> session,
          rpc::OutRequest& request)
      : calls_(std::move(calls)),
        sink_(std::move(sink)),
        session_(std::move(session)),
        ticket_(request.hook_ticket),
        keep_(std::move(request.keep)),
        cancel_(std::move(request.cancel)),
        deadline_(request.deadline),
        what_(request.what),
        what_owner_(std::move(request.what_owner)),
        timeout_(request.timeout),
        timeout_of_(request.timeout_of),
        kind_(request.kind) {
    calls_->gate_.enter_as_part();
  }
  ~Pending() override {
    if (cancel_) cancel_->remove(*this);
  }

  /// Registers this call with the surrounding one, as part of which it was made: if that one is cancelled, so is this
  /// call.
  void join_surrounding() {
    if (cancel_) cancel_->add(CancelFlag::Part::shared_from_this());
  }
  /// The request was sent as `call`. Gives it up at once if the surrounding call was cancelled meanwhile.
  void sent_as(CallId call) {
    call_.store(call.value);
    if (cancel_ && cancel_->is_set()) give_up();
  }
  /// The request was not sent: no outcome follows.
  void forget() { calls_->gate_.leave(); }

  void give_up() noexcept override {
    const CallId call{call_.load()};
    if (call.value == 0) return;  // the request has no id yet: `sent_as` will see that the flag is set
    session_->requests().cancel(
        call, Error(Errc::cancelled, std::string(what_) + ": the call that it is part of was cancelled"));
  }

  void on_reply(Result<InFrame> reply) override {
    if (!reply) {
      return finish(reply.error().code() == Errc::timeout ? too_late() : reply.error());
    }
    if (reply->header.flags & wire::kFlagError) return finish(decode_error(*reply));
    Result<rpc::InPayload> payload{rpc::InPayload()};
    const auto decoded = decode_payload(*reply, calls_->parts_.options.limits, *payload);
    if (!decoded) return finish(decoded.error());
    payload->owner = std::move(reply->payload).share();  // the views stay
    if (!reply->manifest) return finish(std::move(payload));
    // A reply may carry references too: user code sees them only once they are confirmed (RR-6).
    auto received = std::static_pointer_cast<ReceivedRRefs>(reply->manifest);
    auto waiting = std::make_shared<rpc::InPayload>(std::move(*payload));
    const auto self = std::static_pointer_cast<Pending>(CancelFlag::Part::shared_from_this());
    when_confirmed(received, calls_->parts_.ports.executor(), deadline_, [self, waiting](Result<void> confirmed) {
      self->finish(confirmed ? Result<rpc::InPayload>(std::move(*waiting)) : Result<rpc::InPayload>(confirmed.error()));
    });
  }

 private:
  void finish(Result<rpc::InPayload>&& reply) {
    if (rpc::CallHook* hook = calls_->parts_.ports.hook()) {
      if (reply) {
        if (auto seen = hook->on_reply_received(rpc::HookTicket{ticket_}, *reply); !seen) reply = seen.error();
      } else {
        hook->on_reply_dropped(rpc::HookTicket{ticket_}, reply.error());
      }
    }
    {
      // This thread holds the session's read turn: continuations must not run on it.
      const rpc::NoUserCode reading;
      sink_->on_reply(std::move(reply));
    }
    calls_->gate_.leave();
  }

  /// Returns the error of a reply that is late, with what this side knows. Only the callee knows whether the call runs
  /// or waits, or whether its promise is open; it logs how long each took when the call ends (CALL-18).
  Error too_late() const {
    std::string text = std::string(what_) + ": no reply within " + base::format_rounded(timeout_);
    if (timeout_of_ == rpc::TimeoutOf::call) text += ", the time-out of this call (CallOptions::timeout)";
    if (timeout_of_ == rpc::TimeoutOf::worker) text += " (cluster.rpc_timeout, WorkerOptions::rpc_timeout)";
    if (timeout_of_ == rpc::TimeoutOf::surrounding) text += ", which were left of the call that it is part of";
    const std::string& callee = session_->peer().name;
    const bool is_fetch = kind_ == wire::FrameKind::fetch;
    const bool needs_turn = is_fetch || kind_ == wire::FrameKind::method;
    text += "; " + callee + " is connected: ";
    text += is_fetch ? "the call that makes the value" : "the call";
    text += " still runs there";
    if (kind_ != wire::FrameKind::op) text += ", has returned a future whose promise is not set yet";
    text += is_fetch ? ", or the fetch waits behind other calls" : ", or waits behind other calls";
    if (needs_turn) text += " or for its turn on a busy object";
    text += " or until fewer calls wait there (max_threads bounds them)";
    text += "; once it ends the log of " + callee + " says how long each took (log/" + callee + ".log in a run)";
    return Error(Errc::timeout, callee, std::move(text));
  }

  const std::shared_ptr<OutgoingCalls> calls_;  // keeps the worker
  const std::shared_ptr<rpc::ReplySink> sink_;
  const std::shared_ptr<Session> session_;
  const std::uint64_t ticket_;
  const std::shared_ptr<rpc::RRefHandle> keep_;
  const std::shared_ptr<const CancelFlag> cancel_;
  const base::TimePoint deadline_;
  const std::string_view what_;
  const std::shared_ptr<const std::string> what_owner_;
  const base::Duration timeout_;
  const rpc::TimeoutOf timeout_of_;
  const wire::FrameKind kind_;
  std::atomic<std::uint64_t> call_{0};  // 0 = it was not sent yet
};

namespace {

/// Takes room in the peer's window; waits for it if the caller wants that, and gives the turn of the running object
/// back meanwhile.
/// @param has_waited  set if it waited
Result<std::uint64_t> take_room(Session& session, const rpc::OutRequest& request, bool fail_when_full, bool& has_waited,
                                bool one_way) {
  std::uint64_t size = request.whole_body().size();
  for (const at::Tensor& tensor : request.tensors) {
    if (tensor.defined() && tensor.layout() == at::kStrided) size += tensor.nbytes();
  }
  const std::uint64_t room = one_way ? transport::OneWayCalls::room_for(size) : transport::OpenRequests::room_for(size);
  auto taken = session.requests().try_acquire(room);
  if (!taken && !fail_when_full && taken.error().code() == Errc::overloaded) {
    if (const auto may = rpc::check_may_wait(); !may) return may.error();
    const base::WaitPermit permit;
    if (!permit) return permit.error();
    const rpc::TurnPause pause;
    has_waited = true;
    taken = session.requests().acquire(room, request.deadline);
  }
  if (!taken) return taken.error();
  return room;
}

}  // namespace

rpc::CallToken OutgoingCalls::submit(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options,
                                     std::shared_ptr<rpc::ReplySink> sink) {
  const std::uint64_t ticket = request.hook_ticket;
  const auto refuse = [&](Error error) {
    if (rpc::CallHook* hook = parts_.ports.hook()) hook->on_unsent(rpc::HookTicket{ticket});
    sink->on_reply(std::move(error));
    return rpc::CallToken{};
  };
  const base::Gate::Visit visit(gate_);
  if (!visit) return refuse(leaving());
  auto slot = reserve(peer, request, options);
  if (!slot) return refuse(slot.error());
  const auto call = submit(*slot, request, sink);
  if (!call) return refuse(call.error());
  return {*call, peer.id(), slot->session->connection(), slot->session};
}

Result<OutgoingCalls::SendSlot> OutgoingCalls::reserve(const Peer& peer, const rpc::OutRequest& request,
                                                       const CallOptions& options, bool one_way) {
  auto session = PeerState::of(peer).session();
  if (!session) return parts_.joiner.why_unreachable(peer.id());
  bool has_waited = request.kind == wire::FrameKind::create;  // perhaps for creations before it
  const auto room = take_room(*session, request, options.fail_when_full, has_waited, one_way);
  if (!room) return room.error();
  auto handed = parts_.rrefs.hand_over(request.rrefs, session);
  if (!handed) {
    session->requests().give_back(*room);
    return handed.error();
  }
  return SendSlot{std::move(session), *room, std::move(*handed), has_waited};
}

Result<CallId> OutgoingCalls::submit(SendSlot& slot, rpc::OutRequest& request, std::shared_ptr<rpc::ReplySink> sink) {
  EncodedFrame encoded;
  if (const auto done = encode_request(request, slot.session->peer().features, slot.handed, encoded); !done) {
    slot.session->requests().give_back(slot.room);
    slot.handed.undo();
    return done.error();
  }
  if (request.deadline != base::kNever) {
    const base::Duration left =
        slot.has_waited ? request.deadline - parts_.ports.executor().clock().now() : request.timeout;
    encoded.frame.header.remaining_us = static_cast<std::uint64_t>(
        std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::microseconds>(left).count()));
  }
  auto pending = std::make_shared<Pending>(std::shared_ptr<OutgoingCalls>(parts_.ports.shared_from_this(), this),
                                           std::move(sink), slot.session, request);
  pending->join_surrounding();
  const auto call = slot.session->request(encoded.frame, slot.room, request.deadline, pending);
  if (!call) {
    pending->forget();
    slot.handed.undo();
    return call.error();
  }
  pending->sent_as(*call);
  return call;
}

Result<void> OutgoingCalls::tell(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options) {
  const base::Gate::Visit visit(gate_);
  if (!visit) return leaving();
  auto slot = reserve(peer, request, options, true);
  if (!slot) return slot.error();
  const auto give_up = [&](Error error) {
    slot->session->requests().give_back(slot->room);
    slot->handed.undo();
    return error;
  };
  if ((slot->session->peer().features & net::kKnowsTell) == 0) {
    return give_up(Error(Errc::unsupported, peer.name(), peer.name() + " is of a version without one-way calls"));
  }
  EncodedFrame encoded;
  if (const auto done = encode_request(request, slot->session->peer().features, slot->handed, encoded); !done) {
    return give_up(done.error());
  }
  if (const auto fits = slot->session->writer().check_size(encoded.frame); !fits) return give_up(fits.error());
  gate_.enter_as_part();
  if (slot->session->one_way_calls().send(encoded.frame, slot->room, std::move(request.keep))) return {};
  gate_.leave();
  slot->handed.undo();
  return parts_.joiner.why_unreachable(peer.id());
}

void OutgoingCalls::on_tells_ended(std::size_t count) noexcept {
  for (; count > 0; --count) gate_.leave();
}

void OutgoingCalls::on_tells_lost(const std::string& peer, std::size_t count, const Error& reason) {
  tells_lost_.fetch_add(count);
  parts_.ports.log(std::to_string(count) + (count == 1 ? " one-way call to " : " one-way calls to ") + peer +
                   " had not ended when it was lost, and may not have run: " + reason.message());
  on_tells_ended(count);
}

void OutgoingCalls::cancel(const rpc::CallToken& token) noexcept {
  if (token.call.value == 0) return;
  if (const auto session = parts_.peers.at(token.peer).session(); session && session->connection() == token.session) {
    session->requests().cancel(token.call, Error(Errc::cancelled, "cancelled by the caller"));
  }
}

namespace {

/// The reply to a creation: only whether it succeeded matters, the value stays at its owner.
class CreationSink final : public rpc::ReplySink {
 public:
  explicit CreationSink(std::function<void(Result<void>)> done) : done_(std::move(done)) {}
  void on_reply(Result<rpc::InPayload> reply) override { done_(reply ? Result<void>() : Result<void>(reply.error())); }

 private:
  std::function<void(Result<void>)> done_;
};

}  // namespace

Result<std::shared_ptr<rpc::RRefHandle>> OutgoingCalls::create_remote(const Peer& peer, rpc::OutRequest&& request,
                                                                      const CallOptions& options, rpc::TypeKey type) {
  const std::uint64_t ticket = request.hook_ticket;
  const auto refuse = [&](Error error) {
    if (rpc::CallHook* hook = parts_.ports.hook()) hook->on_unsent(rpc::HookTicket{ticket});
    return error;
  };
  const base::Gate::Visit visit(gate_);
  if (!visit) return refuse(leaving());
  if (!options.fail_when_full) {
    const auto ended = parts_.rrefs.ending().wait_until_few(request.deadline);
    if (!ended) return refuse(ended.error().at(parts_.ports.name()));
    if (gate_.is_closed()) return refuse(leaving());
  }
  auto slot = reserve(peer, request, options);
  if (!slot) return refuse(slot.error());
  const RRefId id = parts_.rrefs.make_rref_id();
  std::shared_ptr<rpc::RRefHandle> handle;
  std::function<void(Result<void>)> answered;
  // Nothing below waits: the lock keeps creation numbers in the order of the lane (RR-9).
  const base::LockGuard order(PeerState::of(peer).create_mutex());
  if (peer.id() == parts_.ports.id()) {
    handle = parts_.rrefs.own(id, type);
    slot->handed.set_creation({id, {}, {}});
    answered = [this, id](Result<void> reply) {
      // The value was set by the serving side unless the request failed before it.
      if (!reply) parts_.rrefs.set_value(id, reply.error());
    };
  } else {
    handle = parts_.rrefs.use_created(id, slot->session, peer, type, slot->handed);
    answered = [this, fork = handle->fork()](Result<void> reply) {
      parts_.rrefs.creation_answered(fork, std::move(reply));
    };
  }
  // The fork ends by itself when its last handle goes, also while the creation is running: so the reply does not
  // keep the handle.
  if (const auto call = submit(*slot, request, std::make_shared<CreationSink>(answered)); !call) {
    answered(call.error());
    return refuse(call.error());
  }
  return handle;
}

Result<std::shared_ptr<rpc::RRefHandle>> OutgoingCalls::create_local(std::shared_ptr<rpc::HostedObject> object) {
  const base::Gate::Visit visit(gate_);
  if (!visit) return leaving();
  auto handle = parts_.rrefs.own(object->id(), object->type().key);
  const RRefId id = object->id();
  parts_.rrefs.set_value(id, std::move(object));
  return handle;
}

Error OutgoingCalls::leaving() const { return *parts_.ports.leaving(); }

}  // namespace caftan::actors
