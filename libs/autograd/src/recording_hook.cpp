#include "caftan/autograd/internal/recording_hook.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <string>
#include <utility>

#include "caftan/autograd/checkpoint.hpp"
#include "caftan/autograd/internal/call_section.hpp"
#include "caftan/rpc/ambient.hpp"

namespace caftan::autograd {

namespace {

// Distinguishes a reply from the request with the same key.
constexpr std::uint64_t kResponse = 0xd1b54a32d192ed03ULL;

/// Returns whether the pointer was ever set, even if its object is gone by now.
bool was_set(const std::weak_ptr<void>& context) noexcept {
  const std::weak_ptr<void> nothing;
  return context.owner_before(nothing) || nothing.owner_before(context);
}

std::uint64_t recorded_bytes(const std::vector<at::Tensor>& tensors, const std::vector<std::uint8_t>& recorded) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    if (recorded[i] != 0) bytes += gradient_bytes(tensors[i]);
  }
  return bytes;
}

void write(const CallSection& section, wire::Bytes& to) {
  wire::OutArchive archive(to);
  archive << section;
}

/// Under no_grad detaches the tensors: none is recorded, so none may arrive with requires_grad set (DA-18).
void detach_under_no_grad(std::vector<at::Tensor>& tensors) {
  if (c10::GradMode::is_enabled()) return;
  for (at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.requires_grad()) tensor = tensor.detach();
  }
}

/// Records the tensors that need gradients as a message of `context` to the worker `to`. Returns the id of the message;
/// its number is 0 if no tensor needs gradients.
Result<AutogradMessageId> record_sent_tensors(ContextRecord& context, const std::optional<WorkerLife>& to,
                                              std::uint64_t order_key, std::vector<at::Tensor>& tensors,
                                              std::vector<std::uint8_t>& recorded) {
  recorded.clear();
  detach_under_no_grad(tensors);
  bool any = false;
  for (const at::Tensor& tensor : tensors) any = any || (tensor.defined() && tensor.requires_grad());
  if (!any || !to) return AutogradMessageId{};
  const Result<AutogradMessageId> message = context.next_message();
  if (!message) return message;
  auto function = record_sent({context.id(), *message, to->id, order_key}, tensors, recorded);
  if (!function) return AutogradMessageId{};
  const Result<void> added = context.add_sent(std::move(function), *to, recorded_bytes(tensors, recorded));
  if (!added) return added.error();
  return message;
}

/// Records the arrived tensors that the sender has recorded.
/// @param from  the sender
Result<void> record_received_tensors(ContextRecord& context, const CallSection& section, WorkerId from,
                                     rpc::InPayload& payload) {
  if (!section.message) {
    if (payload.recorded.empty()) return {};
    return Error(Errc::malformed_payload, "tensors are said to be recorded, without the id of their message");
  }
  // DA-16: an id is valid only for the peer that it was recorded with.
  if (section.message.worker != from) {
    return Error(Errc::malformed_payload, "a recorded message whose id is not its sender's");
  }
  const RecordedMessage message{context.id(), section.message, from, section.order_key};
  const auto function = record_received(message, payload.tensors, payload.recorded);
  if (!function) return function.error();
  if (!*function) return Error(Errc::malformed_payload, "a recorded message without recorded tensors");
  return context.add_received(section.message.maker(), recorded_bytes(payload.tensors, payload.recorded));
}

/// The span of a called function, open while the function runs.
class SpanScope {
 public:
  SpanScope(std::shared_ptr<ContextRecord> context, std::uint64_t key) : context_(std::move(context)), key_(key) {
    context_->begin_span(key);
  }
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;
  ~SpanScope() { context_->end_span(key_); }

 private:
  const std::shared_ptr<ContextRecord> context_;
  const std::uint64_t key_;
};

/// What a reply must know of its call. It fits into a ticket, where the lowest bit distinguishes it from a pointer to a
/// Ticket.
struct Origin {
  WorkerId peer;
  bool grad_mode = true;  // of the code that called

  static bool is_origin(rpc::HookTicket ticket) noexcept { return (ticket.value & 1) != 0; }
  static Origin from(rpc::HookTicket ticket) noexcept {
    return {WorkerId{static_cast<std::uint32_t>(ticket.value >> 2)}, (ticket.value & 2) != 0};
  }
  rpc::HookTicket to_ticket() const noexcept { return {(std::uint64_t{peer.value} << 2) | (grad_mode ? 2U : 0U) | 1U}; }
};

/// Gives tensors that arrived unrecorded a node that refuses their gradients with an error (DA-21).
void close_unrecorded(ContextHost& host, const Origin& origin, bool in_context, std::vector<at::Tensor>& tensors) {
  const bool any = std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.requires_grad() && tensor.is_leaf();
  });
  if (!any) return;
  if (!origin.grad_mode) {
    for (at::Tensor& tensor : tensors) {
      if (tensor.defined() && tensor.is_leaf()) tensor.set_requires_grad(false);
    }
    return;
  }
  const std::string name = host.name_of(origin.peer);
  const char* const why = in_context ? "its autograd context could record nothing more, or had ended"
                                     : "it was made in no autograd context";
  refuse_gradients(tensors,
                   Error(Errc::unknown_context, name,
                         "the graph has a result of a call to " + name + " that was not recorded: " + why +
                             ". Open autograd::Context before the call, and on threads of your own pass it on with "
                             "context.bind; or detach() the result, if no gradient is to flow through it"));
}

Result<void> learn(ContextHost& host, ContextRecord& context, const DecidedSet& decided) {
  const Result<bool> news = context.learn(decided);
  if (!news) return news.error();
  if (*news) host.learned(context.id());
  return {};
}

}  // namespace

/// The state of one request of this worker between its hooks. It lives on the heap as the ticket's value; the single
/// hook that ends the request (CALL-3) deletes it.
struct RecordingHook::Ticket {
  std::shared_ptr<ContextRecord> context;  // null = outside any
  Origin origin;
  AutogradMessageId message;  // recorded with the request
  OrderKey drawn;             // the order key of the calling code as it was after this request had drawn its own
  rpc::HookTicket next;

  /// Takes over the state that a ticket points to; null where the ticket is an Origin itself: of a call outside of any
  /// context, with no hook behind this one.
  static std::unique_ptr<Ticket> take(rpc::HookTicket ticket) {
    if (Origin::is_origin(ticket)) return nullptr;
    return std::unique_ptr<Ticket>(reinterpret_cast<Ticket*>(ticket.value));
  }
  static rpc::HookTicket give(std::unique_ptr<Ticket> ticket) {
    return {reinterpret_cast<std::uint64_t>(ticket.release())};
  }
  ~Ticket() {
    if (context) context->end_use();
  }
};

Result<rpc::HookTicket> RecordingHook::on_request(const Peer& to, rpc::OutRequest& request) {
  if (is_inside_checkpoint()) {
    return Error(Errc::unsupported, "a call from a checkpointed segment: backward would make it again, unrecorded");
  }
  Ambient* const ambient = Ambient::current();
  const bool in_context = ambient && was_set(ambient->autograd_context);
  const Origin origin{to.id(), c10::GradMode::is_enabled()};
  if (!in_context && !next_) return origin.to_ticket();
  auto ticket = std::make_unique<Ticket>();
  ticket->origin = origin;
  if (in_context) {
    if (const Result<void> recorded = record_request(to, request, *ticket); !recorded) return recorded.error();
  }
  if (next_) {
    const Result<rpc::HookTicket> next = next_->on_request(to, request);
    if (!next) {
      if (ticket->message) ticket->context->forget_sent(ticket->message);
      return next;
    }
    ticket->next = *next;
  }
  return Ticket::give(std::move(ticket));
}

Result<void> RecordingHook::record_request(const Peer& to, rpc::OutRequest& request, Ticket& ticket) {
  Ambient& ambient = *Ambient::current();
  auto context = std::static_pointer_cast<ContextRecord>(ambient.autograd_context.lock());
  if (!context) {
    return Error(Errc::context_released, "this code runs in an autograd context that has ended: nothing was sent");
  }
  if (&context->host() != &host_) {
    return Error(Errc::foreign_context, "autograd context " + to_string(context->id()) +
                                            " belongs to another worker of this process: call through that one");
  }
  if (const Result<void> used = context->begin_use(ambient.depth); !used) return used;
  ticket.context = context;
  CallSection section;
  section.context = context->id();
  section.order_key = ambient.order.next();
  ticket.drawn = ambient.order;
  const auto message =
      record_sent_tensors(*context, host_.life_of(to), section.order_key, request.tensors, request.recorded);
  if (!message) return message.error();
  ticket.message = section.message = *message;
  // An operator without tensors that need gradients has nothing to do with the context.
  if (request.kind == wire::FrameKind::op && !section.message) return {};
  context->met(to.id());
  section.decided = context->decided();
  write(section, request.autograd);
  return {};
}

void RecordingHook::on_unsent(rpc::HookTicket value) noexcept {
  const auto ticket = Ticket::take(value);
  if (!ticket) return;
  if (ticket->message) ticket->context->forget_sent(ticket->message);
  // A request that the lane refuses counts as never made: the code's later calls get the order keys that they would
  // have had without it.
  Ambient* const ambient = Ambient::current();
  const OrderKey& drawn = ticket->drawn;
  if (ambient && drawn.ordinal != 0 && ambient->order.key == drawn.key && ambient->order.ordinal == drawn.ordinal) {
    --ambient->order.ordinal;
  }
  if (next_) next_->on_unsent(ticket->next);
}

Result<void> RecordingHook::on_receive(rpc::InPayload& payload, CallInfo& info) {
  if (!payload.autograd.empty()) {
    const auto section = wire::decode<CallSection>(payload.autograd);
    if (!section) return section.error();
    const auto context = host_.enter(section->context, info.caller);
    if (!context) return context.error();
    Result<void> done = learn(host_, **context, section->decided);
    if (done) done = record_received_tensors(**context, *section, info.caller.id(), payload);
    if (!done) return done;
    info.autograd_context = *context;
    info.order_key = section->order_key;
    info.running = std::make_shared<SpanScope>(*context, section->order_key);
  } else if (!payload.recorded.empty()) {
    return Error(Errc::malformed_payload, "recorded tensors without an autograd context");
  }
  return next_ ? next_->on_receive(payload, info) : Result<void>();
}

void RecordingHook::on_reply(const CallInfo& info, rpc::OutReply& reply) {
  if (const auto context = std::static_pointer_cast<ContextRecord>(info.autograd_context.lock())) {
    CallSection section;
    section.context = context->id();
    section.order_key = mix64(info.order_key ^ kResponse);
    const auto message =
        record_sent_tensors(*context, host_.life_of(info.caller), section.order_key, reply.tensors, reply.recorded);
    // If the context has ended meanwhile it has no pass any more: the result is sent as one outside of any context.
    if (message) {
      section.message = *message;
      section.decided = context->decided();
      write(section, reply.autograd);
    } else {
      reply.recorded.clear();
    }
  }
  if (next_) next_->on_reply(info, reply);
}

Result<void> RecordingHook::on_reply_received(rpc::HookTicket value, rpc::InPayload& reply) {
  const auto ticket = Ticket::take(value);
  Result<void> done;
  if (!reply.autograd.empty()) {
    const auto section = wire::decode<CallSection>(reply.autograd);
    if (!section) {
      done = section.error();
    } else if (!ticket || !ticket->context || ticket->context->id() != section->context) {
      done = Error(Errc::malformed_payload, "a reply of another autograd context than its call's");
    } else {
      done = learn(host_, *ticket->context, section->decided);
      if (done) done = record_received_tensors(*ticket->context, *section, ticket->origin.peer, reply);
    }
  } else if (!reply.recorded.empty()) {
    done = Error(Errc::malformed_payload, "recorded tensors without an autograd context");
  }
  if (done && !reply.tensors.empty()) {
    close_unrecorded(host_, ticket ? ticket->origin : Origin::from(value), ticket && ticket->context, reply.tensors);
  }
  if (!next_ || !ticket) return done;
  if (done) return next_->on_reply_received(ticket->next, reply);
  next_->on_reply_dropped(ticket->next, done.error());
  return done;
}

void RecordingHook::on_reply_dropped(rpc::HookTicket value, const Error& error) noexcept {
  const auto ticket = Ticket::take(value);
  if (ticket && next_) next_->on_reply_dropped(ticket->next, error);
}

void RecordingHook::on_peer_down(const WorkerLife& peer) noexcept {
  if (next_) next_->on_peer_down(peer);
}

}  // namespace caftan::autograd
