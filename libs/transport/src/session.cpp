#include "caftan/transport/session.hpp"

#include <algorithm>
#include <cstring>

#include "caftan/wire/archive.hpp"
#include "caftan/wire/shortened.hpp"
#include "read_turn.hpp"

namespace caftan::transport {

namespace {

constexpr std::size_t kFlushAt = 64 * 1024;  // bytes that are never held back
constexpr unsigned kFramesHeldBack = 16;     // requests that leave together while the peer works on earlier ones
constexpr std::uint64_t kReplyRoom = 4096;   // bytes of the window kept for a reply beside an equal echo
constexpr int kMaxVectors = 128;
constexpr std::size_t kEnoughToShowLife = 1 << 20;  // bytes

}  // namespace

std::shared_ptr<Session> Session::make(Parts parts, PeerIdentity peer, std::uint64_t connection,
                                       std::shared_ptr<Channel> channel, const SessionLimits& limits) {
  return std::shared_ptr<Session>(new Session(parts, std::move(peer), connection, std::move(channel), limits));
}

void Session::start(wire::ByteView early) {
  channel_->start([weak = weak_from_this()](bool readable, bool writable) {
    if (const auto self = weak.lock()) self->on_ready(readable, writable);
  });
  if (!early.empty()) {
    const ReadTurn turn(reading_);
    (void)frames_.put(early);
    if (const auto handled = handle_frames(); !handled) end(handled.error());
  }
  if (liveness_) watch_life();
  const std::lock_guard lock(out_mutex_);
  arm_locked();
}

namespace {

/// Returns what both sides take.
wire::MessageLimits smallest_of(wire::MessageLimits own, const net::PeerLimits& peer) {
  own.message = std::min(own.message, peer.message);
  own.tensor_bytes = std::min(own.tensor_bytes, peer.tensor_bytes);
  own.tensors = std::min(own.tensors, peer.segments);
  return own;
}

}  // namespace

Session::Session(Parts parts, PeerIdentity peer, std::uint64_t connection, std::shared_ptr<Channel> channel,
                 const SessionLimits& limits)
    : parts_(parts),
      peer_(std::move(peer)),
      connection_(connection),
      limits_(limits),
      sendable_(smallest_of(limits, peer_.limits)),
      channel_(std::move(channel)),
      requests_(parts.executor.clock().now(), limits.requests),
      window_(std::min(limits.window, peer_.limits.window), limits.requests),
      serve_gate_(std::min(limits.window, peer_.limits.window)),
      frames_(parts.pool, limits),
      liveness_(limits.liveness ? std::optional<net::Liveness>(std::in_place, *limits.liveness, peer_.name,
                                                               parts.executor.clock().now())
                                : std::nullopt) {}

Session::~Session() { channel_->close(); }

// ---- sending

bool Session::send(wire::OutFrame& frame, bool urgent) {
  return hand_over(frame, urgent ? std::nullopt : std::optional(FlushBy::queue_end));
}

bool Session::hand_over(wire::OutFrame& frame, std::optional<FlushBy> may_wait) {
  bool later = false;
  {
    std::unique_lock lock(out_mutex_);
    if (ended() || closing_) return false;
    append_locked(frame);
    watch_backlog_locked();
    frames_out_.fetch_add(1, std::memory_order_relaxed);
    if (want_write_ || write_failed_) return true;
    ++held_back_;
    const bool enough =
        outbox_.queued_bytes() >= kFlushAt || (may_wait == FlushBy::soon && held_back_ >= kFramesHeldBack);
    if (!may_wait || enough) {
      flush_locked(lock);
    } else if (!flush_due_ || (may_wait == FlushBy::soon && flush_due_ != FlushBy::soon)) {
      flush_due_ = may_wait;
      later = true;
    }
  }
  if (later) parts_.executor.flush_later(shared_from_this(), *may_wait);
  return true;
}

void Session::append_locked(wire::OutFrame& frame) {
  wire::Bytes bytes = wire::encode_frame(frame);
  const std::uint64_t bulk = frame.header.bulk_size;
  traffic_.add(frame.header.kind, frame.message, bytes.size(), bulk);
  if (bulk == 0) {
    outbox_.append(std::move(bytes));
  } else {
    outbox_.append(std::move(bytes), CallId{frame.header.call}, std::move(frame.segments));
  }
}

void Session::watch_backlog_locked() {
  const std::uint64_t backlog = outbox_.backlog();
  if (!serve_gate_.concerns(backlog)) return;
  for (Task& again : serve_gate_.on_backlog(backlog)) parts_.executor.post(std::move(again));
}

void Session::flush() {
  std::unique_lock lock(out_mutex_);
  flush_due_.reset();
  if (!want_write_ && !write_failed_) flush_locked(lock);
}

/// Writes what is queued until it is out, the channel is full, or `enough` bytes were written; then asks to be told
/// when there is room. The lock is not held while writing, so that others can append; what they append goes with the
/// next flush.
void Session::flush_locked(std::unique_lock<std::mutex>& lock, std::size_t enough) {
  if (writing_) {
    write_again_ = true;
    return;
  }
  writing_ = write_again_ = true;
  std::size_t total = 0;
  bool full = false;
  while (!full && total < enough && !write_failed_ && (std::exchange(write_again_, false) || outbox_.unfinished())) {
    if (outbox_.empty()) {
      // Bye goes behind everything, tensor bytes included: only then nothing is lost.
      if (!closing_ || bye_queued_) continue;
      bye_queued_ = true;
      wire::OutFrame bye;
      bye.header.kind = wire::FrameKind::bye;
      wire::Bytes farewell;  // the frame only looks at it
      if (own_farewell_.code() != Errc::ok) {
        if (auto encoded = wire::encode(fitting(own_farewell_))) farewell = *std::move(encoded);
      }
      bye.body = farewell;
      append_locked(bye);
    }
    iovec vectors[kMaxVectors];
    const std::size_t count = outbox_.gather(vectors);
    held_back_ = 0;
    std::size_t offered = 0;
    for (std::size_t i = 0; i < count; ++i) offered += vectors[i].iov_len;
    lock.unlock();
    const auto written = channel_->write(vectors, static_cast<int>(count));
    lock.lock();
    if (!written) {
      // The reader sees the end of the connection itself and drains what has arrived first (RR-12).
      write_failed_ = true;
      break;
    }
    outbox_.consume(*written);
    watch_backlog_locked();
    total += *written;
    full = *written < offered;
    write_again_ = write_again_ || (closing_ && !bye_queued_);
  }
  writing_ = false;
  if (total > 0) bytes_out_.fetch_add(total, std::memory_order_relaxed);
  if (total > 0 && liveness_) {
    const std::lock_guard liveness(liveness_mutex_);
    liveness_->on_bytes_out(parts_.executor.clock().now(), total);
  }
  const bool has_rest = full || (total >= enough && !write_failed_ && (write_again_ || outbox_.unfinished()));
  if (has_rest != want_write_) {
    want_write_ = has_rest;
    arm_locked();
  }
  if (outbox_.empty() && bye_queued_ && bye_received_ && !write_failed_) channel_->close_write();
}

/// Tells the channel what this session waits for: reading is left out while a waiting thread reads itself.
void Session::arm_locked() {
  if (ended()) return;
  channel_->arm(reader_ == Reader::poller, want_write_);
}

Error Session::fitting(const Error& error, std::size_t beside) const {
  return wire::fitting(error, sendable_.message - std::min<std::uint64_t>(sendable_.message, beside));
}

Result<void> Session::check_size(const wire::OutFrame& frame) const {
  const std::uint64_t own = frame.sections_size() + frame.body.size() + frame.table.size();
  const auto fits = sendable_.check(own, frame.bulk_size(), frame.segments.size());
  return fits ? fits : fits.error().at(peer_.name);
}

std::uint64_t Session::room_for(std::uint64_t size) noexcept { return 2 * size + kReplyRoom; }

Result<void> Session::try_acquire(std::uint64_t room) {
  if (const auto admitted = window_.try_acquire(room); !admitted) {
    return Error(admitted.error().code(), peer_.name, admitted.error().text());
  }
  return {};
}

Result<void> Session::acquire(std::uint64_t room, TimePoint deadline) {
  return parts_.executor.with_wait([&](Executor::Wait& wait) -> Result<void> {
    struct Shared {
      std::mutex mutex;
      WaitPoint* point;  // null once the wait is over
      Result<void> admitted;
    };
    auto shared = std::make_shared<Shared>();
    shared->point = &wait.point();
    const auto id = window_.acquire_or_wait(room, [shared](Result<void> admitted) {
      const std::lock_guard lock(shared->mutex);
      shared->admitted = std::move(admitted);
      if (shared->point) shared->point->notify();
    });
    if (!id) return id.error().at(peer_.name);
    if (*id == 0) return {};
    wait.wait(deadline, nullptr);
    const bool gave_up = window_.cancel(*id);
    const std::lock_guard lock(shared->mutex);
    shared->point = nullptr;
    if (gave_up)
      return Error(Errc::timeout, peer_.name,
                   "there was no room in time: limits.pending_calls and limits.send_queue bound what is under way to " +
                       peer_.name);
    return shared->admitted;
  });
}

Result<CallId> Session::request(wire::OutFrame& frame, std::uint64_t room, TimePoint deadline,
                                const std::shared_ptr<ResponseSink>& sink) {
  if (const auto fits = check_size(frame); !fits) {
    window_.release(room);
    return fits.error();
  }
  auto call = requests_.insert(Pending{sink, room}, deadline);
  if (!call) {
    window_.release(room);
    return call.error().at(peer_.name);
  }
  frame.header.call = call->value;
  if (deadline != kNever) {
    const auto left = deadline - parts_.executor.clock().now();
    frame.header.remaining_us = static_cast<std::uint64_t>(
        std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::microseconds>(left).count()));
    arm_expiry(deadline);
  }
  // take() decides who answers a request that could not be sent: the end of the session may have failed it already.
  // While the peer works on earlier requests this one may leave together with the next.
  const bool alone = requests_.size() <= 1;
  if (!hand_over(frame, alone ? std::nullopt : std::optional(FlushBy::soon)) && requests_.take(*call)) {
    window_.release(room);
    return left();
  }
  return call;
}

/// What requests fail of once the session takes none. A good-bye that was read says of what its sender failed.
Error Session::left() const {
  if (!bye_received_) return Error(Errc::peer_down, peer_.name, "the session with " + peer_.name + " has ended");
  std::shared_ptr<const Error> cause;
  if (farewell_.code() != Errc::ok) cause = std::make_shared<const Error>(farewell_);
  return Error(Errc::peer_down, peer_.name, peer_.name + " has left", std::move(cause));
}

void Session::fail(Pending pending, const Error& error) {
  window_.release(pending.bytes);
  pending.sink->on_response(error);
}

void Session::cancel(CallId call, Error reason) {
  auto entry = requests_.take(call);
  if (!entry) return;
  wire::OutFrame frame;
  frame.header.kind = wire::FrameKind::cancel;
  frame.header.call = call.value;
  send(frame);
  fail(std::move(entry->sink), reason.at(peer_.name));
}

/// Makes sure that a task looks at the deadlines no later than `deadline`.
void Session::arm_expiry(TimePoint deadline) {
  if (deadline >= expiry_armed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(expiry_mutex_);
  if (deadline >= expiry_armed_.load(std::memory_order_relaxed)) return;
  expiry_armed_.store(deadline, std::memory_order_release);
  parts_.executor.post_at(deadline, [weak = weak_from_this(), deadline] {
    const auto self = weak.lock();
    if (!self || self->ended()) return;
    {
      const std::lock_guard armed(self->expiry_mutex_);
      if (self->expiry_armed_.load() != deadline) return;  // an earlier one was posted since, and goes on from there
      self->expiry_armed_.store(kNever, std::memory_order_release);
    }
    self->expire_requests();
  });
}

/// Fails what is late.
void Session::expire_requests() {
  for (auto& entry : requests_.expire(parts_.executor.clock().now())) {
    wire::OutFrame frame;
    frame.header.kind = wire::FrameKind::cancel;
    frame.header.call = entry.id.value;
    send(frame);
    fail(std::move(entry.sink),
         Error(Errc::timeout, peer_.name, "no answer from " + peer_.name + " within the time-out of the call"));
  }
  if (const TimePoint next = requests_.next_deadline(); next != kNever) arm_expiry(next);
}

/// On the thread that keeps time: a worker is alive, and judges its peers, however long its runners compute (SE-31).
void Session::watch_life() {
  net::Liveness::Action action;
  TimePoint next;
  {
    const std::lock_guard lock(liveness_mutex_);
    action = liveness_->poll(parts_.executor.clock().now(), channel_->has_unread());
    next = liveness_->next_poll();
  }
  if (action == net::Liveness::Action::dead) {
    {
      const std::lock_guard lock(end_mutex_);
      if (!end_requested_) end_requested_ = liveness_->error();
    }
    channel_->break_off();  // wakes a thread that waits for an answer and reads
    // The end runs user code: continuations, on_peer_down.
    parts_.executor.post([weak = weak_from_this()] {
      if (const auto self = weak.lock(); self && !self->ended()) self->abort(self->liveness_->error());
    });
    return;
  }
  if (action == net::Liveness::Action::send_ping) show_life();
  parts_.executor.keep_time(next, [weak = weak_from_this()] {
    if (const auto self = weak.lock(); self && !self->ended()) self->watch_life();
  });
}

/// Lets bytes go out: what waits to be written, or else a ping. What waits may have room by now that no runner has
/// seen. A runner goes on with what is more than enough for a sign of life: this thread has other peers to watch
/// (SE-31).
void Session::show_life() {
  std::unique_lock lock(out_mutex_);
  if (ended() || write_failed_) return;
  if (outbox_.empty()) {
    if (closing_) return;
    wire::OutFrame ping;
    ping.header.kind = wire::FrameKind::ping;
    append_locked(ping);
    frames_out_.fetch_add(1, std::memory_order_relaxed);
  }
  flush_locked(lock, kEnoughToShowLife);
}

void Session::close(const Error& reason) {
  std::unique_lock lock(out_mutex_);
  if (!closing_) own_farewell_ = reason;
  closing_ = true;
  if (!want_write_ && !write_failed_) flush_locked(lock);
}

void Session::abort(Error reason) {
  {
    const std::lock_guard lock(end_mutex_);
    if (!end_requested_) end_requested_ = std::move(reason);
  }
  if (const ReadTurn turn(reading_); turn.held()) {
    end(*end_requested_);
  } else {
    channel_->break_off();  // whoever reads now, perhaps asleep in poll, ends the session when its turn is over
  }
}

net::Traffic Session::traffic() const {
  const std::lock_guard lock(out_mutex_);
  return traffic_;
}

Session::Counters Session::counters() const {
  return {frames_out_.load(), frames_.frames(), bytes_out_.load(), bytes_in_.load()};
}

}  // namespace caftan::transport
