// The calls that this worker makes: from OutRequest to a frame, and from the answer back to the caller.

#include <algorithm>
#include <caf/send.hpp>

#include "caftan/base/wait_permit.hpp"
#include "caftan/tensor/codec.hpp"
#include "rref/rref_handles.hpp"
#include "worker/in_words.hpp"
#include "worker/worker_core.hpp"

namespace caftan::actors {

using transport::InFrame;
using transport::OutFrame;
using transport::Session;

namespace {

/// Turns the one end of a request into the one answer of its caller.
class PendingCall final : public transport::ResponseSink, public CancelFlag::Part {
 public:
  PendingCall(std::shared_ptr<WorkerCore> core, std::shared_ptr<rpc::ReplySink> sink, std::shared_ptr<Session> session,
              rpc::OutRequest& request)
      : core_(std::move(core)),
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
    core_->own_call_begins();
  }
  ~PendingCall() override {
    if (cancel_) cancel_->remove(*this);
  }

  /// Lets the cancelling of the call that this one is part of cancel this one, too.
  void join_surrounding() {
    if (cancel_) cancel_->add(CancelFlag::Part::shared_from_this());
  }
  /// It was sent. The call that it is part of may have been cancelled meanwhile.
  void sent_as(CallId call) {
    call_.store(call.value);
    if (cancel_ && cancel_->is_set()) give_up();
  }
  /// It was not sent: nobody will be answered through it.
  void forget() { core_->own_call_ends(); }

  void give_up() noexcept override {
    const CallId call{call_.load()};
    if (call.value == 0) return;  // sent_as sees that the flag is set
    session_->cancel(call, Error(Errc::cancelled, std::string(what_) + ": the call that it is part of was cancelled"));
  }

  void on_response(Result<InFrame> response) override {
    if (!response) {
      return finish(response.error().code() == Errc::timeout ? too_late() : response.error());
    }
    if (response->header.flags & wire::kFlagError) return finish(decode_error(*response));
    auto payload = core_->decode_payload(*response);
    if (!payload) return finish(payload.error());
    payload->owner = std::make_shared<const wire::Bytes>(std::move(response->payload));  // moved: the views stay
    if (!response->manifest) return finish(std::move(*payload));
    // A response may carry references too: nobody sees them before they are confirmed (RR-6).
    auto received = std::static_pointer_cast<ReceivedRRefs>(response->manifest);
    auto waiting = std::make_shared<rpc::InPayload>(std::move(*payload));
    const auto self = std::static_pointer_cast<PendingCall>(CancelFlag::Part::shared_from_this());
    core_->rref_host().when_confirmed(received, deadline_, [self, waiting](Result<void> confirmed) {
      self->finish(confirmed ? Result<rpc::InPayload>(std::move(*waiting)) : Result<rpc::InPayload>(confirmed.error()));
    });
  }

 private:
  void finish(Result<rpc::InPayload> reply) {
    if (rpc::CallHook* hook = core_->hook()) {
      if (reply) {
        if (auto seen = hook->on_reply_received(rpc::HookTicket{ticket_}, *reply); !seen) reply = seen.error();
      } else {
        hook->on_reply_dropped(rpc::HookTicket{ticket_}, reply.error());
      }
    }
    {
      // This thread holds the session's read turn: continuations must not run on it.
      const rpc::FrameReading reading;
      sink_->on_reply(std::move(reply));
    }
    core_->own_call_ends();
  }

  static Error decode_error(const InFrame& response) {
    Error error;
    if (const auto decoded = wire::decode_into(response.body, error); !decoded) return decoded.error();
    const auto kinds = wire::find_section(response.sections, wire::SectionType::error_kinds);
    if (!kinds) return kinds.error();
    if (!*kinds) return error;
    const auto added = wire::add_kinds(error, **kinds);
    return added ? error : added.error();
  }

  /// Says what is known here of an answer that did not come. Whether the call runs or waits only its callee knows,
  /// which says so when it ends (CALL-18).
  Error too_late() const {
    std::string text = std::string(what_) + ": no answer within " + in_words(timeout_);
    if (timeout_of_ == rpc::TimeoutOf::call) text += ", the time-out of this call";
    if (timeout_of_ == rpc::TimeoutOf::worker) text += " (cluster.rpc_timeout, WorkerOptions::rpc_timeout)";
    if (timeout_of_ == rpc::TimeoutOf::surrounding) text += ", which were left of the call that it is part of";
    const std::string& callee = session_->peer().name;
    text += "; " + callee + " is connected: the call still runs there or waits for ";
    text += kind_ == wire::FrameKind::method || kind_ == wire::FrameKind::fetch ? "its turn on a busy object"
                                                                                : "a free runner";
    text += ", or until fewer calls wait there (ThreadedExecutor::Options::max_threads bounds them)";
    text += "; once it ends the log of " + callee + " says which (log/" + callee + ".log in a run)";
    return Error(Errc::timeout, callee, std::move(text));
  }

  const std::shared_ptr<WorkerCore> core_;
  const std::shared_ptr<rpc::ReplySink> sink_;
  const std::shared_ptr<Session> session_;
  const std::uint64_t ticket_;
  const std::shared_ptr<rpc::RRefHandle> keep_;
  const std::shared_ptr<const CancelFlag> cancel_;
  const TimePoint deadline_;
  const std::string_view what_;
  const std::shared_ptr<const std::string> what_owner_;
  const Duration timeout_;
  const rpc::TimeoutOf timeout_of_;
  const wire::FrameKind kind_;
  std::atomic<std::uint64_t> call_{0};  // 0 = it was not sent yet
};

/// Takes room in the peer's window; waits for it if the caller wants that, and gives the turn of the running object
/// back meanwhile.
Result<std::uint64_t> take_room(Session& session, const rpc::OutRequest& request, bool fail_when_full) {
  std::uint64_t size = request.body.size();
  for (const at::Tensor& tensor : request.tensors) {
    if (tensor.defined() && tensor.layout() == at::kStrided) size += tensor.nbytes();
  }
  const std::uint64_t room = Session::room_for(size);
  auto taken = session.try_acquire(room);
  if (!taken && !fail_when_full && taken.error().code() == Errc::overloaded) {
    if (const auto may = rpc::check_may_wait(); !may) return may.error();
    const WaitPermit permit;
    if (!permit) return permit.error();
    const rpc::TurnPause pause;
    taken = session.acquire(room, request.deadline);
  }
  if (!taken) return taken.error();
  return room;
}

void append_target(wire::Bytes& sections, const RRefId& id) {
  wire::Bytes bytes;
  wire::OutArchive archive(bytes);
  archive << id;
  wire::append_section(sections, wire::SectionType::target, wire::kSectionCritical, bytes);
}

}  // namespace

Result<OutFrame> WorkerCore::encode_request(rpc::OutRequest& request, std::uint64_t features, Sharing& sharing,
                                            wire::Bytes& sections, tensor::EncodedTensors& tensors) {
  OutFrame frame;
  frame.header.kind = request.kind;
  frame.header.trace = request.trace;
  if (!sharing.empty()) {
    auto manifest = sharing.encode();
    if (!manifest) return manifest.error();
    wire::append_section(sections, wire::SectionType::rrefs, wire::kSectionCritical, *manifest);
  }
  if (request.target) append_target(sections, request.target);
  if (request.held) {
    wire::Bytes held;
    rpc::encode_held(request.held, held);
    wire::append_section(sections, wire::SectionType::chain, 0, held);
  }
  if (request.depth > 0 && (features & net::kKnowsDepth)) {
    const std::byte depth{static_cast<std::uint8_t>(std::min(request.depth, 255U))};
    wire::append_section(sections, wire::SectionType::depth, 0, {&depth, 1});
  }
  if (!request.grad_mode && (features & net::kKnowsGradMode)) {
    const std::byte off{0};
    wire::append_section(sections, wire::SectionType::grad_mode, 0, {&off, 1});
  }
  if (!request.autograd.empty()) {
    wire::append_section(sections, wire::SectionType::autograd, wire::kSectionCritical, request.autograd);
  }
  if (!request.tensors.empty()) {
    auto encoded = tensor::encode_tensors(request.tensors, request.recorded);
    if (!encoded) return encoded.error();
    tensors = std::move(*encoded);
  }
  frame.sections = sections;
  frame.body = request.body;
  frame.table = tensors.table;
  frame.segments = std::move(tensors.segments);
  return frame;
}

rpc::CallToken WorkerCore::submit(const Peer& peer, rpc::OutRequest&& request, const CallOptions& options,
                                  std::shared_ptr<rpc::ReplySink> sink) {
  const std::uint64_t ticket = request.hook_ticket;
  const auto refuse = [&](Error error) {
    if (hook()) hook()->on_unsent(rpc::HookTicket{ticket});
    sink->on_reply(std::move(error));
    return rpc::CallToken{};
  };
  const OwnCall own(*this);
  auto way = open_way(peer, request, options);
  if (!way) return refuse(way.error());
  const auto call = send_request(*way, request, sink);
  if (!call) return refuse(call.error());
  return {*call, peer.id(), way->session->connection()};
}

/// Its OwnCall was counted before this looks at life_: stop() waits for it, or this sees that stop() began.
Result<WorkerCore::Way> WorkerCore::open_way(const Peer& peer, const rpc::OutRequest& request,
                                             const CallOptions& options) {
  if (is_leaving()) return Error(Errc::shut_down, name(), "this worker is leaving");
  auto session = static_cast<const PeerState&>(*peer.record()).session();
  if (!session) {
    const std::lock_guard lock(mutex_);
    if (peers_[peer.id().value]->met.value == 0) {
      return Error(Errc::peer_unreachable, peer.name(),
                   peer.name() + " has not come yet: calls begin when the worker is ready");
    }
    return Error(Errc::peer_down, peer.name(), "there is no connection with " + peer.name());
  }
  const auto room = take_room(*session, request, options.fail_when_full);
  if (!room) return room.error();
  auto sharing = rrefs_.share(request.rrefs, session);
  if (!sharing) {
    session->give_back(*room);
    return sharing.error();
  }
  return Way{std::move(session), *room, std::move(*sharing)};
}

Result<CallId> WorkerCore::send_request(Way& way, rpc::OutRequest& request, std::shared_ptr<rpc::ReplySink> sink) {
  wire::Bytes sections;
  tensor::EncodedTensors tensors;
  auto frame = encode_request(request, way.session->peer().features, way.sharing, sections, tensors);
  if (!frame) {
    way.session->give_back(way.room);
    way.sharing.undo();
    return frame.error();
  }
  auto pending = std::make_shared<PendingCall>(shared_core(), std::move(sink), way.session, request);
  pending->join_surrounding();
  const auto call = way.session->request(*frame, way.room, request.deadline, pending);
  if (!call) {
    pending->forget();
    way.sharing.undo();
    return call.error();
  }
  pending->sent_as(*call);
  return call;
}

void WorkerCore::cancel(const rpc::CallToken& token) noexcept {
  if (token.call.value == 0) return;
  if (const auto session = peers_[token.peer.value]->session(); session && session->connection() == token.session) {
    session->cancel(token.call, Error(Errc::cancelled, "cancelled by the caller"));
  }
}

namespace {

/// The reply to a creation: only its own end matters, the value stays where it is.
class CreationSink final : public rpc::ReplySink {
 public:
  explicit CreationSink(std::function<void(Result<void>)> done) : done_(std::move(done)) {}
  void on_reply(Result<rpc::InPayload> reply) override { done_(reply ? Result<void>() : Result<void>(reply.error())); }

 private:
  std::function<void(Result<void>)> done_;
};

}  // namespace

Result<std::shared_ptr<rpc::RRefHandle>> WorkerCore::create_remote(const Peer& peer, rpc::OutRequest&& request,
                                                                   const CallOptions& options, rpc::TypeKey type) {
  const std::uint64_t ticket = request.hook_ticket;
  const auto refuse = [&](Error error) {
    if (hook()) hook()->on_unsent(rpc::HookTicket{ticket});
    return error;
  };
  const OwnCall own(*this);
  if (!options.fail_when_full) {
    if (const auto ended = rrefs_.wait_for_ends(request.deadline); !ended) return refuse(ended.error().at(name()));
  }
  auto way = open_way(peer, request, options);
  if (!way) return refuse(way.error());
  auto& state = const_cast<PeerState&>(static_cast<const PeerState&>(*peer.record()));
  const RRefId id = make_rref_id();
  std::shared_ptr<rpc::RRefHandle> handle;
  std::function<void(Result<void>)> answered;
  // Nothing below waits: the lock keeps creation numbers in the order of the lane (RR-9).
  const std::lock_guard order(state.create_mutex);
  if (peer.id() == self_) {
    handle = rrefs_.own(id, type);
    way->sharing.set_creation(Creation{id, {}, {}});
    answered = [this, id](Result<void> answer) {
      // The value was set by the serving side unless the request failed before it.
      if (!answer) rrefs_.set_value(id, answer.error());
    };
  } else {
    handle = rrefs_.use_created(id, way->session, peer, type, way->sharing);
    answered = [this, fork = handle->fork()](Result<void> answer) {
      rrefs_.creation_answered(fork, std::move(answer));
    };
  }
  // The fork ends by itself when its last handle goes, also while the creation is running: so the answer does not
  // keep the handle.
  if (const auto call = send_request(*way, request, std::make_shared<CreationSink>(answered)); !call) {
    answered(call.error());
    return refuse(call.error());
  }
  return handle;
}

Result<std::shared_ptr<rpc::RRefHandle>> WorkerCore::create_local(std::shared_ptr<rpc::HostedObject> object) {
  const OwnCall own(*this);
  if (is_leaving()) return Error(Errc::shut_down, name(), "this worker is leaving");
  auto handle = rrefs_.own(object->id(), object->type().key);
  const RRefId id = object->id();
  rrefs_.set_value(id, std::move(object));
  return handle;
}

void WorkerCore::on_unobserved_error(std::string_view what, const Error& error) noexcept {
  const std::string about(what);
  log_repeated(about + ": nobody looked at this error: " + error.message(),
               about + ": nobody looked at # more errors in this second");
}

void WorkerCore::log_repeated(const std::string& line, const std::string& more) {
  if (!repeated_.add(more)) return;
  log(line);
  count_repeated_later(more);
}

void WorkerCore::count_repeated_later(const std::string& more) {
  constexpr Duration kPeriod = std::chrono::seconds(1);
  executor().post_at(executor().clock().now() + kPeriod, [weak = weak_from_this(), more] {
    const auto alive = weak.lock();
    if (!alive) return;
    auto& self = static_cast<WorkerCore&>(*alive);
    const std::size_t count = self.repeated_.end_period(more);
    if (count == 0) return;
    self.log(RepeatedLines::with_count(more, count));
    self.count_repeated_later(more);
  });
}

Result<rpc::InPayload> WorkerCore::decode_payload(InFrame& frame) const {
  if (!frame.received) return frame.received.error();
  rpc::InPayload payload;
  payload.body = frame.body;
  if (!frame.table.empty()) {
    const auto layout =
        tensor::TensorLayout::parse(frame.table, {options_.limits.tensor_bytes, options_.limits.tensors});
    if (!layout) return layout.error();
    auto tensors = layout->build(std::move(frame.segments));
    if (!tensors) return tensors.error();
    payload.tensors.reserve(tensors->size());
    bool any_recorded = false;
    for (auto& decoded : *tensors) {
      any_recorded = any_recorded || decoded.recorded;
      payload.tensors.push_back(std::move(decoded.tensor));
    }
    if (any_recorded) {
      payload.recorded.reserve(tensors->size());
      for (const auto& decoded : *tensors) payload.recorded.push_back(decoded.recorded ? 1 : 0);
    }
  }
  if (frame.manifest) payload.rrefs = std::static_pointer_cast<ReceivedRRefs>(frame.manifest)->handles;
  const auto recorded = wire::find_section(frame.sections, wire::SectionType::autograd);
  if (!recorded) return recorded.error();
  if (*recorded) wire::append(payload.autograd, **recorded);
  return payload;
}

}  // namespace caftan::actors
