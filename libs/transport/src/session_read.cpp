// The reading half of a session: from bytes to frames to whoever handles them, and the end of the session.

#include "caftan/transport/session.hpp"
#include "caftan/wire/archive.hpp"
#include "read_turn.hpp"

namespace caftan::transport {

namespace {

constexpr std::size_t kReadsPerTurn = 16;  // then others get their turn
constexpr std::uint32_t kAnswersBeforeDeferral = 8;
constexpr Duration kLongestDeferral = std::chrono::milliseconds(1);

bool is_request(wire::FrameKind kind) { return kind >= wire::FrameKind::call && kind <= wire::FrameKind::op; }

}  // namespace

void Session::on_ready(bool readable, bool writable) {
  if (writable) {
    std::unique_lock lock(out_mutex_);
    want_write_ = false;
    if (!write_failed_) flush_locked(lock);
  }
  if (readable) {
    const ReadTurn turn(reading_);
    if (!turn.held()) return;  // a waiting thread reads; it rearms when it leaves
    for (std::size_t reads = 0; reads < kReadsPerTurn; ++reads) {
      if (read_some() != ReadOutcome::more) break;
    }
  }
  {
    const std::lock_guard lock(end_mutex_);
    if (!end_requested_) {
      const std::lock_guard out(out_mutex_);
      if (reader_ == Reader::nobody) reader_ = Reader::poller;
      arm_locked();
      return;
    }
  }
  if (const ReadTurn turn(reading_); turn.held() && !ended()) end(*end_requested_);
}

bool Session::claim() {
  if (ended()) return false;
  if (reading_.exchange(true, std::memory_order_acquire)) return false;
  const std::lock_guard lock(out_mutex_);
  ++claims_;
  if (std::exchange(reader_, Reader::waiter) == Reader::poller) arm_locked();
  return true;
}

bool Session::read_claimed() {
  work_queued_ = false;
  const ReadOutcome outcome = read_some();
  return outcome != ReadOutcome::ended && !work_queued_;
}

std::weak_ptr<ClaimableSource> Session::release(bool may_defer) {
  const bool only_answers = answers_in_row_ >= kAnswersBeforeDeferral;
  {
    const std::lock_guard lock(end_mutex_);
    if (!end_requested_) {
      const std::lock_guard out(out_mutex_);
      reading_.store(false, std::memory_order_release);  // whoever claims it next waits for this lock
      if (!may_defer || !only_answers || want_write_) {
        read_by_poller_locked();
        return {};
      }
      reader_ = Reader::nobody;
      if (!std::exchange(deferral_watched_, true)) watch_deferral(claims_);
      return weak_from_this();
    }
    reading_.store(false, std::memory_order_release);
  }
  if (const ReadTurn turn(reading_); turn.held() && !ended()) end(*end_requested_);
  return {};
}

void Session::end_deferral() {
  const std::lock_guard lock(out_mutex_);
  if (reader_ == Reader::nobody) read_by_poller_locked();
}

void Session::read_by_poller_locked() {
  reader_ = Reader::poller;
  arm_locked();
}

/// Ends a deferral when no thread has claimed the session for a while; goes on as long as one does.
void Session::watch_deferral(std::uint64_t claims_seen) {
  parts_.executor.keep_time(parts_.executor.clock().now() + kLongestDeferral, [weak = weak_from_this(), claims_seen] {
    const auto self = weak.lock();
    if (!self || self->ended()) return;
    const std::lock_guard lock(self->out_mutex_);
    if (self->reader_ != Reader::poller && self->claims_ != claims_seen) return self->watch_deferral(self->claims_);
    self->deferral_watched_ = false;
    if (self->reader_ == Reader::nobody) self->read_by_poller_locked();
  });
}

Session::ReadOutcome Session::read_some() {
  if (ended()) return ReadOutcome::ended;
  const wire::FrameReader::Room room = frames_.room();
  iovec vectors[2];
  int count = 0;
  if (!room.direct.empty()) vectors[count++] = {room.direct.data(), room.direct.size()};
  vectors[count++] = {room.buffer.data(), room.buffer.size()};
  const auto got = channel_->read(vectors, count);
  if (!got) {
    if (const auto handled = handle_frames(); !handled) {
      end(handled.error());
    } else {
      end(bye_received_ ? left()
                        : Error(Errc::peer_down, peer_.name, "lost " + peer_.name + ": " + got.error().text()));
    }
    return ReadOutcome::ended;
  }
  if (*got == 0) return ReadOutcome::drained;
  bytes_in_.fetch_add(*got, std::memory_order_relaxed);
  if (liveness_) {
    const std::lock_guard lock(liveness_mutex_);
    liveness_->on_bytes_in(parts_.executor.clock().now(), *got);
  }
  frames_.filled(*got);
  if (const auto handled = handle_frames(); !handled) {
    end(Error(handled.error().code(), peer_.name, handled.error().text()));
    return ReadOutcome::ended;
  }
  const bool was_filled = *got == room.direct.size() + room.buffer.size();
  return was_filled || frames_.has_direct_room() ? ReadOutcome::more : ReadOutcome::drained;
}

/// Hands over what can be read of the bytes that have come.
Result<void> Session::handle_frames() {
  for (;;) {
    const auto found = frames_.next();
    if (!found) return found.error();
    switch (*found) {
      case wire::FrameReader::Item::nothing:
        return {};
      case wire::FrameReader::Item::manifest: {
        auto manifest = parts_.handler.on_manifest(*this, frames_.kind(), frames_.manifest());
        if (!manifest) return manifest.error();
        frames_.set_manifest(std::move(*manifest));
        break;
      }
      case wire::FrameReader::Item::frame:
        if (auto done = dispatch(frames_.take()); !done) return done;
        break;
    }
  }
}

Result<void> Session::dispatch(wire::InFrame frame) {
  switch (frame.header.kind) {
    case wire::FrameKind::ping: {
      wire::OutFrame pong;
      pong.header.kind = wire::FrameKind::pong;
      send(pong);
      return {};
    }
    case wire::FrameKind::pong:
      return {};
    case wire::FrameKind::bye:
      if (!frame.body.empty()) {
        if (auto decoded = wire::decode_into(frame.body, farewell_); !decoded) return decoded;
      }
      bye_received_ = true;
      close();  // ours follows; the peer ends when it has read it
      return {};
    case wire::FrameKind::response:
    case wire::FrameKind::actor_reply:
      // An id that is not in the table is a late reply and is dropped.
      ++answers_in_row_;
      if (auto entry = requests_.take(CallId{frame.header.call})) {
        window_.release(entry->sink.bytes);
        entry->sink.sink->on_response(std::move(frame));
      }
      return {};
    case wire::FrameKind::chunk:
      return Error(Errc::malformed_payload, "a chunk out of place");
    default:
      break;
  }
  answers_in_row_ = 0;
  if (is_request(frame.header.kind) || frame.header.kind == wire::FrameKind::cancel) {
    work_queued_ = work_queued_ || frame.header.kind != wire::FrameKind::cancel;
    return parts_.handler.on_frame(shared_from_this(), std::move(frame));
  }
  return actors_->on_frame(std::move(frame));
}

void Session::end(Error reason) {
  if (ended_.exchange(true)) return;
  {
    const std::lock_guard lock(end_mutex_);
    if (end_requested_) reason = *end_requested_;  // we broke it off ourselves
    end_requested_ = reason;
  }
  const auto self = shared_from_this();
  // What is still in the outbox (an answer to bye, say) gets one try; a broken connection refuses it at once.
  {
    std::unique_lock lock(out_mutex_);
    if (!write_failed_ && bye_received_) flush_locked(lock);
  }
  channel_->close();
  frames_.drop_incomplete();
  window_.close(reason);
  serve_gate_.close();  // what was held back is dropped: its answers would reach no one
  for (auto& entry : requests_.take_all(reason)) fail(std::move(entry.sink), reason);
  actors_->end(reason, [self, reason] { self->parts_.handler.on_end(*self, reason); });
}

}  // namespace caftan::transport
