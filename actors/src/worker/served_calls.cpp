#include "worker/served_calls.hpp"

#include <utility>

#include "caftan/base/internal/rounded_duration.hpp"
#include "caftan/net/internal/handshake.hpp"
#include "worker/call_frame.hpp"
#include "worker/served_call.hpp"
#include "worker/tell_queue.hpp"

namespace caftan::actors {

using transport::Session;
using wire::InFrame;

Result<void> ServedCalls::on_frame(const std::shared_ptr<Session>& session, InFrame frame) {
  if (frame.header.kind == wire::FrameKind::cancel) {
    std::shared_ptr<ServedCall> call;
    {
      const base::LockGuard lock(mutex_);
      const auto found = cancellable_.find(ServedCall::key_of(*session, frame.header.call));
      if (found != cancellable_.end()) call = found->second.lock();
    }
    if (call) call->cancel();
    return {};
  }
  const auto [entry, brief] = dispatcher_.look_up(frame.header.kind, frame.body);
  (void)gate_.enter();
  count_.fetch_add(1, std::memory_order_relaxed);
  const bool one_way = frame.header.call == 0 && (session->peer().features & net::kKnowsTell) != 0;
  auto call = std::make_shared<ServedCall>(std::shared_ptr<ServedCalls>(ports_.shared_from_this(), this), session,
                                           std::move(frame), entry, one_way);
  if (one_way) {
    queue_of(*session, true)->push(std::move(call));
    return {};
  }
  if (!brief) {
    const base::LockGuard lock(mutex_);
    remove_ended_locked();
    const std::uint64_t key = call->key();
    if (spare_.empty()) {
      cancellable_[key] = call;
    } else {
      spare_.back().key() = key;
      spare_.back().mapped() = call;
      cancellable_.insert(std::move(spare_.back()));
      spare_.pop_back();
    }
    keys_.push_back(std::uint64_t{key});
  }
  if (call->has_target() && has_tells_.load(std::memory_order_relaxed)) {
    if (const auto queue = queue_of(*session, false); queue && queue->holds_methods()) {
      queue->push(std::move(call));
      return {};
    }
  }
  call->start(brief);
  return {};
}

std::shared_ptr<TellQueue> ServedCalls::queue_of(const Session& session, bool make) {
  const base::LockGuard lock(mutex_);
  const auto found = tells_.find(&session);
  if (found != tells_.end()) return found->second;
  if (!make) return nullptr;
  has_tells_.store(true, std::memory_order_relaxed);
  return tells_[&session] = std::make_shared<TellQueue>(ports_.executor());
}

void ServedCalls::on_session_end(const Session& session) {
  const base::LockGuard lock(mutex_);
  tells_.erase(&session);
}

void ServedCalls::log_failed(const std::string& caller, const Error& error) {
  log_.write_repeated("a one-way call of " + caller + " failed: " + error.message(),
                      "# more one-way calls of " + caller + " failed in this second");
}

/// Looks at a few of the calls that can be cancelled, and removes those that have ended. As more are looked at than
/// come, those that have ended are at most as many as the others, and the end of a call takes no lock.
void ServedCalls::remove_ended_locked() {
  constexpr int kLooks = 2;
  for (int i = 0; i < kLooks && !keys_.empty(); ++i) {
    const std::uint64_t key = keys_.front();
    keys_.pop_front();
    const auto found = cancellable_.find(key);
    if (found == cancellable_.end()) continue;
    if (!found->second.expired()) {
      keys_.push_back(std::uint64_t{key});
      continue;
    }
    auto node = cancellable_.extract(found);
    node.mapped().reset();
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(node));
  }
}

void ServedCalls::log_late(std::string_view function, const std::string& caller, const Lateness& lateness) {
  const std::string name(function);
  log_.write_repeated(name + ", called by " + caller + ", ended " + base::format_rounded(lateness.late) +
                          " after its time: it waited " + base::format_rounded(lateness.waited) +
                          " here before it began, and took " + base::format_rounded(lateness.took) + " then",
                      name + ": # more calls ended after their time in this second");
}

/// Shortens the error to what the limits allow: the text of an exception may be of any length. A result that is too
/// large is refused, but an error must arrive.
Result<void> ServedCalls::send_error(const std::shared_ptr<Session>& session, std::uint64_t call, const Error& error) {
  EncodedFrame encoded;
  auto done = encode_error(session->writer().fitting(error.at(ports_.name())), call, session->peer().features, encoded);
  if (!done) return done;
  session->writer().send(encoded.frame, transport::FlushBy::task_end);
  return {};
}

Result<void> ServedCalls::send_reply(const std::shared_ptr<Session>& session, std::uint64_t call,
                                     Result<rpc::OutReply>&& reply) {
  if (session->ended()) return {};
  if (!reply) return send_error(session, call, reply.error());
  auto handed = rrefs_.hand_over(reply->rrefs, session);
  if (!handed) return handed.error();
  const auto give_up = [&](Error error) {
    handed->undo();
    return error;
  };
  EncodedFrame encoded;
  if (const auto done = encode_result(*reply, call, *handed, encoded); !done) {
    return give_up(done.error().at(ports_.name()));
  }
  if (const auto fits = session->writer().check_size(encoded.frame); !fits) {
    return give_up(Error(fits.error().code(), ports_.name(), "the result: " + fits.error().text()));
  }
  if (!session->writer().send(encoded.frame, transport::FlushBy::task_end)) handed->undo();
  return {};
}

}  // namespace caftan::actors
