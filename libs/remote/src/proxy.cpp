#include "proxy.hpp"

#include <caf/system_messages.hpp>

#include "caftan/base/reused.hpp"
#include "caftan/wire/archive.hpp"
#include "control_frame.hpp"

namespace caftan::remote {

namespace {

/// Hands the reply of a remote actor to the local actor that has sent the request.
class ActorRequest final : public transport::ReplySink {
 public:
  ActorRequest(std::shared_ptr<transport::Session> session, caf::strong_actor_ptr asker, caf::message_id id)
      : session_(std::move(session)), asker_(std::move(asker)), id_(id) {}

  void on_reply(Result<wire::InFrame> reply) override { deliver(decode(std::move(reply))); }

 private:
  caf::message decode(Result<wire::InFrame> reply) {
    if (!reply) return caf::make_message(to_caf(reply.error()));
    if (reply->header.flags & wire::kFlagError) {
      Error error;
      const auto decoded = wire::decode_into(reply->body, error);
      return caf::make_message(to_caf(decoded ? error : decoded.error()));
    }
    if (!reply->received) return caf::make_message(to_caf(reply->received.error()));  // WI-22
    ActorExchange& exchange = ActorExchange::of(*session_);
    InAttachment beside{reply->table, std::move(reply->segments), {}};
    auto message = exchange.host().messages().decode(reply->body, beside, exchange);
    return message ? std::move(*message) : caf::make_message(to_caf(message.error()));
  }

  void deliver(caf::message message) {
    asker_->enqueue(caf::make_mailbox_element(nullptr, id_.response_id(), {}, std::move(message)), nullptr);
  }

  std::shared_ptr<transport::Session> session_;
  caf::strong_actor_ptr asker_;
  caf::message_id id_;
};

void bounce_request(caf::mailbox_element& what, const Error& error) {
  if (!what.mid.is_request() || !what.sender) return;
  what.sender->enqueue(caf::make_mailbox_element(nullptr, what.mid.response_id(), {}, caf::make_message(to_caf(error))),
                       nullptr);
}

}  // namespace

Proxy::Proxy(caf::actor_config& config, std::weak_ptr<transport::Session> session, const Address& address, bool watched)
    : caf::actor_proxy(config), session_(std::move(session)), address_(address), watched_(watched) {}

Proxy::~Proxy() {
  if (const auto session = session_.lock()) ActorExchange::of(*session).forget(address_);
}

void Proxy::enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) {
  const caf::type_erased_tuple& content = what->content();
  if (content.match_elements<caf::exit_msg>()) return send_exit(content.get_as<caf::exit_msg>(0));
  const auto sent = send_message(content, what->sender, what->mid, transport::FlushBy::queue_end);
  if (!sent) bounce_request(*what, sent.error());
}

Result<void> Proxy::send(const caf::strong_actor_ptr& from, const caf::type_erased_tuple& content,
                         std::optional<transport::FlushBy> may_wait) {
  return send_message(content, from, caf::make_message_id(), may_wait);
}

/// A linked local actor has ended: sends the exit to the peer's actor.
void Proxy::send_exit(const caf::exit_msg& exit) {
  const auto session = session_.lock();
  if (!session) return;
  const auto source = caf::actor_cast<caf::strong_actor_ptr>(exit.source);
  const Address from = source ? ActorExchange::of(*session).export_actor(source) : Address();
  const Error reason = session->writer().fitting(from_caf(exit.reason, home_system()), ExitBody::kBesideReason);
  send_control(*session, wire::FrameKind::exit, ExitBody{address_, from, reason});
}

Result<void> Proxy::send_message(const caf::type_erased_tuple& content, const caf::strong_actor_ptr& sender,
                                 caf::message_id id, std::optional<transport::FlushBy> may_wait) {
  const auto session = session_.lock();
  if (!session || session->ended()) return Error(Errc::peer_down, "the worker of this actor is gone");
  ActorExchange& exchange = ActorExchange::of(*session);
  base::Reused<wire::Bytes> body;
  body.reuse();
  const bool wants_answer = id.is_request();
  const Address from = sender && !wants_answer ? exchange.export_actor(sender) : Address();
  OutAttachment beside;
  if (const auto addressed = wire::encode_into(body, RouteBody{address_, from}); !addressed) return addressed;
  const auto encoded = exchange.host().messages().encode(content, body, beside, exchange);
  if (!encoded) return encoded.error();
  wire::OutFrame frame;
  frame.header.kind = wire::FrameKind::actor_message;
  frame.message = *encoded;
  frame.body = body;
  frame.table = beside.table;
  frame.segments = std::move(beside.segments);
  if (!wants_answer) {
    if (const auto fits = session->writer().check_size(frame); !fits) return fits;
    if (session->writer().send(frame, may_wait)) return {};
    return Error(Errc::peer_down, "the worker of this actor is gone");
  }
  std::uint64_t size = body.size() + beside.table.size();
  for (const auto& segment : frame.segments) size += segment.size;
  const std::uint64_t room = transport::OpenRequests::room_for(size);
  if (const auto admitted = session->requests().try_acquire(room); !admitted) return admitted;
  const auto sent = session->request(frame, room, base::kNever, std::make_shared<ActorRequest>(session, sender, id));
  return sent ? Result<void>() : sent.error();
}

void Proxy::attach(caf::attachable_ptr ptr) {
  caf::actor_proxy::attach(std::move(ptr));
  if (watched_.exchange(true)) return;
  if (const auto session = session_.lock()) send_control(*session, wire::FrameKind::monitor, MonitorBody{address_});
}

// CAF calls the two backlink hooks under the mutexes of both actors: they append a frame and nothing else, or the end
// of the peer would deadlock.
void Proxy::send_link(wire::FrameKind kind, caf::abstract_actor* other) {
  const auto session = session_.lock();
  if (!session) return;
  const Address from = ActorExchange::of(*session).export_actor(caf::actor_cast<caf::strong_actor_ptr>(other));
  send_control(*session, kind, RouteBody{address_, from});
}

bool Proxy::add_backlink(caf::abstract_actor* other) {
  if (!caf::actor_proxy::add_backlink(other)) return false;
  watched_ = true;  // a linked actor announces its end by an exit frame, so no monitor is needed
  if (!quiet_links()) send_link(wire::FrameKind::link, other);
  return true;
}

bool Proxy::remove_backlink(caf::abstract_actor* other) {
  if (!caf::actor_proxy::remove_backlink(other)) return false;
  if (!quiet_links()) send_link(wire::FrameKind::unlink, other);
  return true;
}

void Proxy::kill_proxy(caf::execution_unit* host, caf::error reason) { cleanup(std::move(reason), host); }

ReplyActor::ReplyActor(caf::actor_config& config, std::weak_ptr<transport::Session> session, std::uint64_t call)
    : caf::actor_proxy(config), session_(std::move(session)), call_(call) {}

ReplyActor::~ReplyActor() {
  if (!answered_) answer_error(Error(Errc::broken_promise, "the actor ended or dropped the request"));
}

void ReplyActor::answer_error(const Error& error) {
  const auto session = session_.lock();
  if (!session) return;
  wire::Bytes body;
  if (!wire::encode_into(body, session->writer().fitting(error))) return;
  wire::OutFrame frame;
  frame.header.kind = wire::FrameKind::actor_reply;
  frame.header.flags = wire::kFlagError;
  frame.header.call = call_;
  frame.body = body;
  session->writer().send(frame, transport::FlushBy::queue_end);
}

void ReplyActor::enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) {
  if (!what->mid.is_response() || answered_.exchange(true)) return;
  const caf::type_erased_tuple& content = what->content();
  if (content.match_elements<caf::error>()) {
    answer_error(from_caf(content.get_as<caf::error>(0), home_system()));
    return;
  }
  const auto session = session_.lock();
  if (!session) return;
  ActorExchange& exchange = ActorExchange::of(*session);
  base::Reused<wire::Bytes> body;
  body.reuse();
  OutAttachment beside;
  if (const auto encoded = exchange.host().messages().encode(content, body, beside, exchange); !encoded) {
    answer_error(encoded.error());
    return;
  }
  wire::OutFrame frame;
  frame.header.kind = wire::FrameKind::actor_reply;
  frame.header.call = call_;
  frame.body = body;
  frame.table = beside.table;
  frame.segments = std::move(beside.segments);
  if (const auto fits = session->writer().check_size(frame); !fits) return answer_error(fits.error());
  session->writer().send(frame, transport::FlushBy::queue_end);
}

void ReplyActor::kill_proxy(caf::execution_unit* host, caf::error reason) { cleanup(std::move(reason), host); }

}  // namespace caftan::remote
