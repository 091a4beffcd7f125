// The reading half of a session: from bytes to frames to whoever handles them, and the end of the session.

#include <algorithm>
#include <cstring>

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
  if (!buffer_) buffer_.reset(new std::byte[kBufferSize]);
  std::span<std::byte> target = direct_target();
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0 && kBufferSize - end_ < wire::kFrameHeaderSize) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  iovec vectors[2];
  int count = 0;
  if (!target.empty()) vectors[count++] = {target.data(), target.size()};
  vectors[count++] = {buffer_.get() + end_, kBufferSize - end_};
  const auto got = channel_->read(vectors, count);
  if (!got) {
    if (const auto parsed = parse(); !parsed) {
      end(parsed.error());
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
  const std::size_t direct = std::min(*got, target.size());
  if (direct > 0) {
    if (chunk_left_ > 0) {
      took_bulk(direct);
    } else {
      payload_filled_ += direct;
    }
  }
  end_ += *got - direct;
  const bool filled = *got == target.size() + (vectors[count - 1].iov_len);
  if (const auto parsed = parse(); !parsed) {
    end(Error(parsed.error().code(), peer_.name, parsed.error().text()));
    return ReadOutcome::ended;
  }
  return filled || !direct_target().empty() ? ReadOutcome::more : ReadOutcome::drained;
}

/// Where the next bytes of the stream belong when the buffer is empty: into a payload or a tensor, past the buffer.
std::span<std::byte> Session::direct_target() {
  if (begin_ != end_) return {};
  if (chunk_left_ > 0) return bulk_target();
  if (header_) return {payload_.data() + payload_filled_, payload_.size() - payload_filled_};
  return {};
}

/// The rest of the segment that the current chunk fills; empty if the message is skipped.
/// Precondition: chunk_left_ > 0, nothing left to settle.
std::span<std::byte> Session::bulk_target() {
  Incomplete& message = incomplete_.front();
  if (!message.frame.received) return {};
  wire::Block& block = message.frame.segments.back();
  return {block.data() + message.offset, std::min<std::size_t>(block.size() - message.offset, chunk_left_)};
}

Result<void> Session::parse() {
  for (;;) {
    if (auto settled = finish_bulk(); !settled) return settled;
    const std::size_t buffered = end_ - begin_;
    if (chunk_left_ > 0) {
      const Incomplete& message = incomplete_.front();
      const std::span<std::byte> target = bulk_target();
      const std::uint64_t wanted =
          message.frame.received ? target.size() : std::min<std::uint64_t>(chunk_left_, message.missing);
      const std::size_t part = std::min<std::uint64_t>(wanted, buffered);
      if (part == 0) return {};
      if (message.frame.received) std::memcpy(target.data(), buffer_.get() + begin_, part);
      took_bulk(part);
      begin_ += part;
    } else if (header_) {
      const std::size_t part = std::min(payload_.size() - payload_filled_, buffered);
      if (part > 0) std::memcpy(payload_.data() + payload_filled_, buffer_.get() + begin_, part);
      payload_filled_ += part;
      begin_ += part;
      if (payload_filled_ < payload_.size()) return {};
      if (auto done = finish_payload(); !done) return done;
    } else {
      if (buffered < wire::kFrameHeaderSize) return {};
      const auto header = wire::decode_header(buffer_.get() + begin_);
      if (!header) return header.error();
      begin_ += wire::kFrameHeaderSize;
      if (auto begun = begin_frame(*header); !begun) return begun;
    }
  }
}

void Session::took_bulk(std::size_t bytes) {
  Incomplete& message = incomplete_.front();
  message.offset += bytes;
  message.missing -= bytes;
  chunk_left_ -= static_cast<std::uint32_t>(bytes);
}

/// Takes memory for the next segment of the oldest message once the one before it is full; empty ones are passed by.
/// Without memory the message is skipped from here on (WI-22).
void Session::begin_segment() {
  auto& [frame, sizes, offset, missing] = incomplete_.front();
  while (frame.received && 8 * frame.segments.size() < sizes.size() &&
         (frame.segments.empty() || offset == frame.segments.back().size())) {
    std::uint64_t size = 0;
    std::memcpy(&size, sizes.data() + 8 * frame.segments.size(), 8);
    auto block = parts_.pool.take(size);
    if (block) {
      frame.segments.push_back(std::move(*block));
    } else {
      frame.received = Error(block.error().code(), "the tensors could not be received: " + block.error().text());
      frame.segments.clear();
    }
    offset = 0;
  }
}

Result<void> Session::begin_frame(const wire::FrameHeader& header) {
  if (bye_received_) return Error(Errc::malformed_payload, "a frame after bye");
  frames_in_.fetch_add(1, std::memory_order_relaxed);
  if (header.kind == wire::FrameKind::chunk) {
    if (incomplete_.empty()) return Error(Errc::malformed_payload, "a chunk that belongs to no message");
    chunk_left_ = header.body_size;
    return {};
  }
  if (const auto fits = limits_.check(header.payload_size(), header.bulk_size, 0); !fits) return fits;
  header_ = header;
  payload_.resize(header.payload_size());
  payload_filled_ = 0;
  return {};
}

Result<void> Session::finish_payload() {
  InFrame frame;
  frame.header = *header_;
  header_.reset();
  frame.payload = std::move(payload_);
  payload_ = {};
  const wire::ByteView all(frame.payload);
  frame.sections = all.first(frame.header.sections_size);
  frame.body = all.subspan(frame.header.sections_size, frame.header.body_size);
  frame.table = all.subspan(frame.header.sections_size + frame.header.body_size);

  wire::ByteView bulk_sizes;
  wire::SectionReader sections(frame.sections);
  for (;;) {
    const auto section = sections.next();
    if (!section) return section.error();
    if (!*section) break;
    switch ((*section)->type) {
      case wire::SectionType::rrefs: {
        auto manifest = parts_.handler.on_manifest(*this, frame.header.kind, (*section)->content);
        if (!manifest) return manifest.error();
        frame.manifest = std::move(*manifest);
        break;
      }
      case wire::SectionType::bulk:
        bulk_sizes = (*section)->content;
        break;
      case wire::SectionType::autograd:
      case wire::SectionType::target:
      case wire::SectionType::chain:
      case wire::SectionType::depth:
      case wire::SectionType::error_kinds:
      case wire::SectionType::grad_mode:
        break;
      default:
        if ((*section)->flags & wire::kSectionCritical) {
          return Error(Errc::protocol_mismatch,
                       "a critical section of unknown type " + std::to_string(static_cast<unsigned>((*section)->type)));
        }
    }
  }
  if (frame.header.bulk_size == 0 && bulk_sizes.empty()) return dispatch(std::move(frame));

  if (bulk_sizes.size() % 8 != 0) return Error(Errc::malformed_payload, "a section of segment sizes is cut off");
  if (const auto fits = limits_.check(0, 0, bulk_sizes.size() / 8); !fits) return fits;
  std::uint64_t left = frame.header.bulk_size;
  for (std::size_t at = 0; at < bulk_sizes.size(); at += 8) {
    std::uint64_t size = 0;
    std::memcpy(&size, bulk_sizes.data() + at, 8);
    if (size > left) return Error(Errc::malformed_payload, "segments are larger than their message");
    left -= size;
  }
  if (left != 0) return Error(Errc::malformed_payload, "segments are smaller than their message");
  const std::uint64_t missing = frame.header.bulk_size;
  incomplete_.push_back({std::move(frame), bulk_sizes, 0, missing});
  return {};
}

/// Hands over the messages whose last byte has come. Bulk arrives in the order of its messages.
Result<void> Session::finish_bulk() {
  while (!incomplete_.empty()) {
    begin_segment();
    if (incomplete_.front().missing != 0) break;
    if (chunk_left_ > 0) return Error(Errc::malformed_payload, "a chunk is longer than its message");
    InFrame frame = std::move(incomplete_.front().frame);
    incomplete_.pop_front();
    if (auto done = dispatch(std::move(frame)); !done) return done;
  }
  return {};
}

Result<void> Session::dispatch(InFrame frame) {
  switch (frame.header.kind) {
    case wire::FrameKind::ping: {
      OutFrame pong;
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
  incomplete_.clear();
  window_.close(reason);
  serve_gate_.close();  // what was held back is dropped: its answers would reach no one
  for (auto& entry : requests_.take_all(reason)) fail(std::move(entry.sink), reason);
  actors_->end(reason, [self, reason] { self->parts_.handler.on_end(*self, reason); });
}

}  // namespace caftan::transport
