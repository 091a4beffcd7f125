// The calls that peers make here: from a frame to a ServedCall, and its answer back to a frame.

#include "caftan/wire/shortened.hpp"
#include "in_words.hpp"
#include "served_call.hpp"

namespace caftan::actors {

using transport::InFrame;
using transport::OutFrame;
using transport::Session;

Result<std::shared_ptr<void>> WorkerCore::on_manifest(Session& session, wire::FrameKind, wire::ByteView manifest) {
  auto received = rrefs_.on_manifest(session, manifest);
  if (!received) return received.error();
  return std::shared_ptr<void>(std::move(*received));
}

Result<void> WorkerCore::on_frame(const std::shared_ptr<Session>& session, InFrame frame) {
  if (frame.header.kind == wire::FrameKind::cancel) {
    std::shared_ptr<ServedCall> call;
    {
      const std::lock_guard lock(served_mutex_);
      const auto found = cancellable_.find(ServedCall::key_of(*session, frame.header.call));
      if (found != cancellable_.end()) call = found->second.lock();
    }
    if (call) call->cancel();
    return {};
  }
  const bool brief = dispatcher_.is_brief(frame.header.kind, frame.body);
  served_calls_.fetch_add(1);
  calls_served_.fetch_add(1, std::memory_order_relaxed);
  auto call = std::make_shared<ServedCall>(shared_core(), session, std::move(frame));
  if (!brief) {
    const std::lock_guard lock(served_mutex_);
    cancellable_[call->key()] = call;
  }
  call->start(brief);
  return {};
}

void WorkerCore::served_call_ended(const ServedCall& call) {
  {
    const std::lock_guard lock(served_mutex_);
    const auto found = cancellable_.find(call.key());
    if (found != cancellable_.end() && found->second.expired()) cancellable_.erase(found);
  }
  served_calls_.fetch_sub(1);
  notify_if_idle();
}

void WorkerCore::on_late_answer(std::string_view function, WorkerId caller, Duration late, Duration waited,
                                Duration took) {
  const std::string name(function);
  log_repeated(name + ", called by " + peers_[caller.value]->name() + ", ended " + in_words(late) +
                   " after its time: it waited " + in_words(waited) + " here before it began, and took " +
                   in_words(took) + " then",
               name + ": # more calls ended after their time in this second");
}

Result<void> WorkerCore::send_response(const std::shared_ptr<Session>& session, std::uint64_t call,
                                       Result<rpc::OutReply>&& reply) {
  if (session->ended()) return {};
  OutFrame frame;
  frame.header.kind = wire::FrameKind::response;
  frame.header.call = call;
  wire::Bytes body;
  if (!reply) {
    frame.header.flags = wire::kFlagError;
    // What an exception says may be of any length. A result that is too large is refused; an error must arrive.
    Error error = session->fitting(reply.error().at(name()));
    wire::Bytes sections;
    if (!(session->peer().features & net::kKnowsErrorKinds)) {
      error = wire::without_kinds(error);
    } else if (const wire::Bytes kinds = wire::encode_kinds(error); !kinds.empty()) {
      wire::append_section(sections, wire::SectionType::error_kinds, 0, kinds);
    }
    if (auto encoded = wire::encode_into(body, error); !encoded) return encoded;
    frame.sections = sections;
    frame.body = body;
    session->send(frame, false);
    return {};
  }
  auto sharing = rrefs_.share(reply->rrefs, session);
  if (!sharing) return sharing.error();
  wire::Bytes sections;
  tensor::EncodedTensors tensors;
  const auto give_up = [&](Error error) {
    sharing->undo();
    return error;
  };
  if (!sharing->empty()) {
    auto manifest = sharing->encode();
    if (!manifest) return give_up(manifest.error());
    wire::append_section(sections, wire::SectionType::rrefs, wire::kSectionCritical, *manifest);
  }
  if (!reply->autograd.empty()) {
    wire::append_section(sections, wire::SectionType::autograd, wire::kSectionCritical, reply->autograd);
  }
  if (!reply->tensors.empty()) {
    const auto shared = reply->of_object ? tensor::SharedMemory::copy : tensor::SharedMemory::reference;
    auto encoded = tensor::encode_tensors(reply->tensors, reply->recorded, shared);
    if (!encoded) {
      std::string text = encoded.error().text();
      if (text.starts_with("argument ")) text = "result " + text.substr(9);
      return give_up(Error(encoded.error().code(), name(), std::move(text)));
    }
    tensors = std::move(*encoded);
  }
  frame.sections = sections;
  frame.body = reply->body;
  frame.table = tensors.table;
  frame.segments = std::move(tensors.segments);
  if (const auto fits = session->check_size(frame); !fits) {
    return give_up(Error(fits.error().code(), name(), "the result: " + fits.error().text()));
  }
  if (!session->send(frame, false)) sharing->undo();
  return {};
}

}  // namespace caftan::actors
