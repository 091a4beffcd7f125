#include "caftan/transport/internal/frame_writer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "caftan/wire/internal/bye_body.hpp"
#include "caftan/wire/internal/shortened.hpp"

namespace caftan::transport {

namespace {

constexpr std::size_t kFlushAt = 64 * 1024;  // a queue of this many bytes is written at once
constexpr unsigned kFramesHeldBack = 16;     // requests that leave together while the peer works on earlier ones
constexpr int kMaxVectors = 128;
constexpr std::size_t kEnoughToShowLife = 1 << 20;  // bytes
/// A `taken` leaves with what is written next, which mostly is a reply or the next call: alone, it would wake the peer.
constexpr base::Duration kTakenWaits = std::chrono::milliseconds(1);
/// One-way calls whose end is reported at once. Fewer wait for more of them, at most as long as a `taken`.
constexpr std::uint64_t kEndedAtOnce = 64;

}  // namespace

bool FrameWriter::send(wire::OutFrame& frame, std::optional<FlushBy> may_wait) {
  bool later = false;
  {
    const base::LockGuard lock(mutex_);
    if (phase_ != Phase::open) return false;
    append_locked(frame);
    watch_backlog_locked();
    frames_.fetch_add(1, std::memory_order_relaxed);
    if (writing_ == Writing::failed) return true;
    if (parts_.claim.wants_room()) {
      // While the channel counts as full, only a thread that shows life writes; that thread then also writes this frame
      // before it stops.
      if (writing_ == Writing::busy) writing_ = Writing::again;
      return true;
    }
    ++held_back_;
    const bool enough =
        outbox_.queued_bytes() >= kFlushAt || (may_wait == FlushBy::soon && held_back_ >= kFramesHeldBack);
    const bool is_last = may_wait == FlushBy::task_end && parts_.executor.runs_last_task();
    if (!may_wait || enough || is_last) {
      flush_locked();
    } else if (!flush_due_ || (may_wait == FlushBy::soon && flush_due_ != FlushBy::soon)) {
      flush_due_ = may_wait;
      later = true;
    }
  }
  if (later) parts_.executor.flush_later(self_.lock(), *may_wait);
  return true;
}

/// Returns whether large segments of a message are to be lent: the section that says where they lie must fit, too.
bool FrameWriter::may_lend(const wire::OutFrame& frame) const {
  if (std::none_of(frame.segments.begin(), frame.segments.end(), wire::is_lent) || !parts_.channel.lends())
    return false;
  const std::uint64_t own = frame.size() - wire::kFrameHeaderSize;
  const std::uint64_t places = wire::kSectionHeaderSize + 8 * frame.segments.size();
  return own <= sendable_.message && places <= sendable_.message - own;
}

void FrameWriter::append_locked(wire::OutFrame& frame) {
  frame.lends = may_lend(frame);
  // Counted as if all tensors followed in chunks, so that the sum does not depend on the kind of channel (DP-1).
  traffic_.add(frame.header.kind, frame.message, frame.size() - frame.places_size(), frame.bulk_size());
  outbox_.append(std::move(frame));
}

void FrameWriter::append_bye_locked() {
  wire::OutFrame bye;
  bye.header.kind = wire::FrameKind::bye;
  // `bye` has only a view of the body, so the body lives here.
  const wire::Bytes body = wire::ByeBody{fitting(farewell_)}.encode();
  bye.body = body;
  append_locked(bye);
}

void FrameWriter::watch_backlog_locked() {
  const std::uint64_t backlog = outbox_.backlog();
  if (!serve_gate_.concerns(backlog)) return;
  for (base::Task& again : serve_gate_.on_backlog(backlog)) parts_.executor.post(std::move(again));
}

void FrameWriter::flush() {
  const base::LockGuard lock(mutex_);
  flush_due_.reset();
  if (!parts_.claim.wants_room() && writing_ != Writing::failed) flush_locked();
}

/// Writes queued bytes until all are written, the channel is full, or `enough` bytes were written; then asks the
/// channel to report room. The lock is not held while writing, so that other threads can append frames, which are
/// written by the next flush. Precondition: writing has not failed.
void FrameWriter::flush_locked(std::size_t enough) {
  if (writing_ != Writing::idle) {
    writing_ = Writing::again;
    return;
  }
  writing_ = Writing::again;
  std::size_t total = 0;
  bool full = false;
  while (!full && total < enough && writing_ != Writing::failed && (take_again_locked() || outbox_.unfinished())) {
    if (outbox_.empty()) {
      // The bye goes behind everything, tensor bytes included, so that nothing is lost.
      if (phase_ != Phase::closing || outbox_.lends()) continue;
      phase_ = Phase::bye_queued;
      append_bye_locked();
    }
    iovec vectors[kMaxVectors];
    const std::size_t count = outbox_.gather(vectors);
    held_back_ = 0;
    std::size_t offered = 0;
    for (std::size_t i = 0; i < count; ++i) offered += vectors[i].iov_len;
    mutex_.unlock();
    const auto written = parts_.channel.write(vectors, static_cast<int>(count));
    mutex_.lock();
    if (!written) {
      // The reader notices the end of the connection itself, and first reads what has arrived (RR-12).
      writing_ = Writing::failed;
      break;
    }
    outbox_.consume(*written);
    watch_backlog_locked();
    total += *written;
    full = *written < offered;
    if (phase_ == Phase::closing) writing_ = Writing::again;
  }
  const bool failed = writing_ == Writing::failed;
  const bool look_again = writing_ == Writing::again || outbox_.unfinished();
  if (!failed) writing_ = Writing::idle;
  if (total > 0) {
    bytes_.fetch_add(total, std::memory_order_relaxed);
    parts_.life.on_bytes_out(total);
  }
  const bool has_rest = full || (total >= enough && !failed && look_again);
  if (has_rest != parts_.claim.wants_room()) {
    parts_.claim.set_wants_room(has_rest);
    parts_.claim.arm();
  }
  if (outbox_.empty() && phase_ == Phase::bye_queued && peer_has_left_ && !failed) parts_.channel.close_write();
}

/// Returns whether another thread asked the writing thread to look at the queue again, and clears that request.
bool FrameWriter::take_again_locked() noexcept {
  if (writing_ != Writing::again) return false;
  writing_ = Writing::busy;
  return true;
}

void FrameWriter::on_room() {
  const base::LockGuard lock(mutex_);
  parts_.claim.set_wants_room(false);
  if (writing_ != Writing::failed) flush_locked();
}

/// The channel may have room that no runner has noticed, so queued bytes are tried. After kEnoughToShowLife bytes a
/// runner writes the rest: the thread that keeps time has other peers to watch (SE-31).
void FrameWriter::show_life() {
  const base::LockGuard lock(mutex_);
  if (phase_ == Phase::ended || writing_ == Writing::failed) return;
  const bool shown = parts_.channel.beat();
  if (outbox_.empty()) {
    if (phase_ != Phase::open || shown) return;
    wire::OutFrame ping;
    ping.header.kind = wire::FrameKind::ping;
    append_locked(ping);
    frames_.fetch_add(1, std::memory_order_relaxed);
  }
  flush_locked(kEnoughToShowLife);
}

void FrameWriter::close_locked(const Error& reason) {
  if (phase_ == Phase::open) {
    if (ended_.count > 0) append_ended_locked();
    phase_ = Phase::closing;
    farewell_ = reason;
  }
  if (!parts_.claim.wants_room() && writing_ != Writing::failed) flush_locked();
}

void FrameWriter::close(const Error& reason) {
  const base::LockGuard lock(mutex_);
  close_locked(reason);
}

void FrameWriter::answer_bye() {
  const base::LockGuard lock(mutex_);
  peer_has_left_ = true;
  close_locked({});
}

void FrameWriter::end(bool try_rest) {
  const base::LockGuard lock(mutex_);
  if (try_rest && writing_ != Writing::failed) flush_locked();
  if (phase_ == Phase::open) phase_ = Phase::ended;  // a thread that is writing may still have to append a bye
}

void FrameWriter::send_taken() {
  const base::LockGuard lock(mutex_);
  if (phase_ == Phase::ended) return;
  wire::OutFrame taken;
  taken.header.kind = wire::FrameKind::taken;
  outbox_.append(std::move(taken));
  frames_.fetch_add(1, std::memory_order_relaxed);
  if (phase_ != Phase::open) return flush_taken_locked();
  if (std::exchange(taken_waits_, true)) return;
  parts_.executor.keep_time(parts_.executor.clock().now() + kTakenWaits, [weak = self_] {
    const auto self = weak.lock();
    if (!self) return;
    const base::LockGuard later(self->mutex_);
    self->taken_waits_ = false;
    self->flush_taken_locked();
  });
}

/// As show_life, it may run on the thread that keeps time: after some bytes a runner writes the rest.
void FrameWriter::flush_taken_locked() {
  if (!parts_.claim.wants_room() && writing_ != Writing::failed) flush_locked(kEnoughToShowLife);
}

void FrameWriter::count_ended(std::uint64_t room) {
  bool later = false;
  {
    const base::LockGuard lock(mutex_);
    if (phase_ != Phase::open) return;
    ++ended_.count;
    ended_.room += room;
    if (ended_.count >= kEndedAtOnce || ended_.room > window_ / 4) {
      append_ended_locked();
      later = !flush_due_.has_value();
      if (later) flush_due_ = FlushBy::queue_end;
    } else if (!std::exchange(ended_.waits, true)) {
      parts_.executor.keep_time(parts_.executor.clock().now() + kTakenWaits, [weak = self_] {
        const auto self = weak.lock();
        if (!self) return;
        const base::LockGuard due(self->mutex_);
        self->ended_.waits = false;
        if (self->ended_.count == 0 || self->phase_ != Phase::open) return;
        self->append_ended_locked();
        self->flush_taken_locked();
      });
    }
  }
  if (later) parts_.executor.flush_later(self_.lock(), FlushBy::queue_end);
}

/// Not counted as traffic, since when it leaves depends on time.
void FrameWriter::append_ended_locked() {
  wire::OutFrame frame;
  frame.header.kind = wire::FrameKind::ended;
  frame.header.call = std::exchange(ended_.count, 0);
  ended_.room = 0;
  outbox_.append(std::move(frame));
  frames_.fetch_add(1, std::memory_order_relaxed);
}

Result<void> FrameWriter::on_taken() {
  std::vector<wire::Segment> segments;  // let go of without the lock
  const base::LockGuard lock(mutex_);
  if (!outbox_.lends()) return Error(Errc::malformed_payload, "taken, but nothing was lent");
  segments = outbox_.taken();
  watch_backlog_locked();
  if (phase_ == Phase::closing && !parts_.claim.wants_room() && writing_ != Writing::failed) flush_locked();
  return {};
}

void FrameWriter::take_back() {
  std::vector<wire::Segment> segments;  // let go of without the lock
  const base::LockGuard lock(mutex_);
  segments = outbox_.take_back();
}

Error FrameWriter::fitting(const Error& error, std::size_t beside) const {
  return wire::fitting(error, sendable_.message - std::min<std::uint64_t>(sendable_.message, beside));
}

Result<void> FrameWriter::check_size(const wire::OutFrame& frame) const {
  const std::uint64_t own = frame.sections_size() + frame.body.size() + frame.table.size();
  const auto fits = sendable_.check(own, frame.bulk_size(), frame.segments.size());
  return fits ? fits : fits.error().at(parts_.peer);
}

net::Traffic FrameWriter::traffic() const {
  const base::LockGuard lock(mutex_);
  return traffic_;
}

}  // namespace caftan::transport
