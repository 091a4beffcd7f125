#include "caftan/transport/internal/session.hpp"

#include <algorithm>

#include "caftan/wire/internal/bye_body.hpp"

namespace caftan::transport {

namespace {

constexpr std::size_t kReadsPerTurn = 16;  // reads of one session in a row before other sockets get their turn
/// Bytes of the peer's memory that are read at once: a frame behind them waits no longer than for a chunk on a socket.
constexpr std::size_t kMostLent = 512 * 1024;

bool is_request(wire::FrameKind kind) { return kind >= wire::FrameKind::call && kind <= wire::FrameKind::op; }

/// Returns the limits that both sides keep.
wire::MessageLimits smallest_of(wire::MessageLimits own, const wire::MessageLimits& peer) {
  own.message = std::min(own.message, peer.message);
  own.tensors = std::min(own.tensors, peer.tensors);
  own.segments = std::min(own.segments, peer.segments);
  return own;
}

}  // namespace

std::shared_ptr<Session> Session::make(Parts parts, PeerIdentity peer, std::uint64_t connection,
                                       std::shared_ptr<Channel> channel, const SessionOptions& options) {
  std::shared_ptr<Session> session(new Session(parts, std::move(peer), connection, std::move(channel), options));
  session->claim_.set_self(std::shared_ptr<ReadClaim>(session, &session->claim_));
  session->writer_.set_self(std::shared_ptr<FrameWriter>(session, &session->writer_));
  session->requests_.set_self(std::shared_ptr<OpenRequests>(session, &session->requests_));
  return session;
}

Session::Session(Parts parts, PeerIdentity peer, std::uint64_t connection, std::shared_ptr<Channel> channel,
                 const SessionOptions& options)
    : parts_(parts),
      peer_(std::move(peer)),
      connection_(connection),
      limits_(options.limits),
      channel_(std::move(channel)),
      claim_(parts.executor, *channel_),
      life_(parts.executor, *channel_, options.liveness, peer_.name),
      writer_({parts.executor, *channel_, claim_, life_, peer_.name}, smallest_of(limits_, peer_.limits),
              std::min(limits_.send_queue, peer_.limits.send_queue)),
      requests_(parts.executor, writer_, peer_.name, std::min(limits_.send_queue, peer_.limits.send_queue),
                limits_.pending_calls),
      one_way_calls_(writer_, requests_),
      reader_(parts.pool, limits_) {}

Session::~Session() { channel_->close(); }

void Session::start(wire::ByteView early) {
  channel_->start([weak = weak_from_this()](bool readable, bool writable) {
    if (const auto self = weak.lock()) self->on_ready(readable, writable);
  });
  if (!early.empty()) {
    const ReadClaim::Turn turn(claim_);
    (void)reader_.put(early);
    if (const auto handled = handle_frames(); !handled) end(handled.error());
  }
  life_.start(std::shared_ptr<LifeWatch>(shared_from_this(), &life_),
              {[this] { writer_.show_life(); }, [this](const Error& error) { on_silence(error); }});
  claim_.arm();
}

Result<CallId> Session::request(wire::OutFrame& frame, std::uint64_t room, base::TimePoint deadline,
                                const std::shared_ptr<ReplySink>& sink) {
  if (const auto fits = writer_.check_size(frame); !fits) {
    requests_.give_back(room);
    return fits.error();
  }
  auto call = requests_.insert(sink, room, deadline);
  if (!call) return call;
  frame.header.call = call->value;
  // If the request could not be sent, forget() shows whether the end of the session has failed it already. While the
  // peer works on earlier requests, this one may leave together with the next.
  const bool alone = requests_.size() <= 1;
  if (!writer_.send(frame, alone ? std::nullopt : std::optional(FlushBy::soon)) && requests_.forget(*call)) {
    return left();
  }
  return call;
}

/// Returns the error of requests once the session accepts none. A bye that was read carries its sender's reason.
Error Session::left() const {
  if (!bye_received_) return Error(Errc::peer_down, peer_.name, "the session with " + peer_.name + " has ended");
  std::shared_ptr<const Error> cause;
  if (farewell_.code() != Errc::ok) cause = std::make_shared<const Error>(farewell_);
  return Error(Errc::peer_down, peer_.name, peer_.name + " has left", std::move(cause));
}

// ---- reading

void Session::on_ready(bool readable, bool writable) {
  if (writable) writer_.on_room();
  bool has_place = false;
  if (readable) {
    const ReadClaim::Turn turn(claim_);
    if (!turn.held()) return;  // a waiting thread reads; the channel is armed again when that thread ends its claim
    for (std::size_t reads = 0; reads < kReadsPerTurn; ++reads) {
      if (read_some() != ReadOutcome::more) break;
    }
    has_place = reader_.has_place();
  }
  if (!end_is_requested()) {
    if (has_place) return read_soon();
    claim_.rearm();
    if (readable && channel_->look() != Look::unable) parts_.executor.has_read(weak_from_this());
    return;
  }
  (void)try_end();
}

/// Goes on with reading the peer's memory, which no channel reports, once other tasks had their turn.
void Session::read_soon() {
  parts_.executor.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_ready(true, false);
  });
}

bool Session::read_claimed() {
  claim_.begin_read();
  const ReadOutcome outcome = read_some();
  return outcome != ReadOutcome::ended && !claim_.work_queued();
}

std::weak_ptr<ClaimableSource> Session::release(bool may_defer) {
  const bool has_place = reader_.has_place();
  std::weak_ptr<ClaimableSource> deferred;
  if (claim_.release(may_defer && !has_place)) deferred = weak_from_this();
  if (!end_is_requested()) {
    if (has_place) read_soon();
    return deferred;
  }
  (void)try_end();
  return {};
}

Session::ReadOutcome Session::read_some() {
  if (ended()) return ReadOutcome::ended;
  if (reader_.has_place()) {
    if (const auto done = read_place(); !done) {
      end(Error(done.error().code(), peer_.name, "lost " + peer_.name + ": " + done.error().text()));
      return ReadOutcome::ended;
    }
  }
  const wire::FrameReader::Room room = reader_.room();
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
                        : Error(got.error().code(), peer_.name, "lost " + peer_.name + ": " + got.error().text()));
    }
    return ReadOutcome::ended;
  }
  if (*got == 0) return reader_.has_place() ? ReadOutcome::more : ReadOutcome::drained;
  bytes_in_.fetch_add(*got, std::memory_order_relaxed);
  life_.on_bytes_in(*got);
  reader_.filled(*got);
  if (const auto handled = handle_frames(); !handled) {
    end(Error(handled.error().code(), peer_.name, handled.error().text()));
    return ReadOutcome::ended;
  }
  const bool was_filled = *got == room.direct.size() + room.buffer.size();
  return was_filled || reader_.has_direct_room() || reader_.has_place() ? ReadOutcome::more : ReadOutcome::drained;
}

/// Reads a part of what the peer has lent with its oldest message, and hands the message over if that was the last.
Result<void> Session::read_place() {
  if (const auto place = reader_.place()) {
    const std::size_t part = std::min(place->to.size(), kMostLent);
    if (auto read = channel_->read_lent(place->from, place->to.first(part)); !read) return read;
    bytes_in_.fetch_add(part, std::memory_order_relaxed);
    reader_.took_place(part);
  }
  return handle_frames();
}

/// Hands each frame that is complete to its receiver.
Result<void> Session::handle_frames() {
  for (;;) {
    const auto found = reader_.next();
    if (!found) return found.error();
    switch (*found) {
      case wire::FrameReader::Item::nothing:
        return {};
      case wire::FrameReader::Item::manifest: {
        auto manifest = parts_.handler.on_manifest(*this, reader_.kind(), reader_.manifest());
        if (!manifest) return manifest.error();
        reader_.set_manifest(std::move(*manifest));
        break;
      }
      case wire::FrameReader::Item::frame: {
        wire::InFrame frame = reader_.take();
        const bool lent = frame.lent;
        if (auto done = dispatch(std::move(frame)); !done) return done;
        if (lent) writer_.send_taken();
        break;
      }
    }
  }
}

Result<void> Session::dispatch(wire::InFrame frame) {
  const wire::FrameKind kind = frame.header.kind;
  switch (kind) {
    case wire::FrameKind::ping: {
      wire::OutFrame pong;
      pong.header.kind = wire::FrameKind::pong;
      writer_.send(pong);
      life_.on_pong_out();
      return {};
    }
    case wire::FrameKind::pong:
      return {};
    case wire::FrameKind::bye:
      return on_bye(frame);
    case wire::FrameKind::response:
    case wire::FrameKind::actor_reply:
      claim_.on_reply();
      requests_.answer(CallId{frame.header.call}, std::move(frame));
      return {};
    case wire::FrameKind::taken:
      return writer_.on_taken();
    case wire::FrameKind::ended: {
      const auto counted = one_way_calls_.on_ended(frame.header.call);
      if (counted) parts_.handler.on_tells_ended(static_cast<std::size_t>(frame.header.call));
      return counted;
    }
    case wire::FrameKind::chunk:
      return Error(Errc::malformed_payload, "a chunk out of place");
    default:
      break;
  }
  claim_.on_other(is_request(kind));
  if (is_request(kind) || kind == wire::FrameKind::cancel) {
    return parts_.handler.on_frame(shared_from_this(), std::move(frame));
  }
  return actors_->on_frame(std::move(frame));
}

Result<void> Session::on_bye(const wire::InFrame& frame) {
  auto body = wire::ByeBody::decode(frame.body);
  if (!body) return body.error();
  farewell_ = std::move(body->reason);
  bye_received_ = true;
  writer_.answer_bye();  // this side's bye follows; the peer ends the session when it has read the bye
  return {};
}

// ---- ending

/// Stores the reason why the session has to end; the first one stays.
void Session::request_end(Error reason) {
  {
    const base::LockGuard lock(end_mutex_);
    if (!end_requested_) end_requested_ = std::move(reason);
  }
  end_is_requested_.fetch_or(1);
}

/// Returns whether the session is to end. The thread that reads asks after it has given the turn to read back, and a
/// thread that requests the end takes the turn after it has set the flag. Both change the flag, if only by nothing: so
/// one of the two changes comes first, and either this thread sees the request or the other one sees the turn free.
bool Session::end_is_requested() noexcept { return end_is_requested_.fetch_or(0) != 0; }

/// Ends the session for the reason that was asked for, and returns true; false if another thread reads it.
bool Session::try_end() {
  const ReadClaim::Turn turn(claim_);
  if (!turn.held() || ended()) return turn.held();
  Error reason;
  {
    const base::LockGuard lock(end_mutex_);
    reason = *end_requested_;
  }
  end(std::move(reason));
  return true;
}

void Session::abort(Error reason) {
  request_end(std::move(reason));
  // Another thread reads now, perhaps asleep in poll: that thread ends the session when its turn to read is over.
  if (!try_end()) channel_->break_off();
}

/// The peer is dead. Runs on the thread that keeps time; a runner ends the session, because the end runs user code.
void Session::on_silence(const Error& error) {
  request_end(error);
  channel_->break_off();  // wakes a thread that sleeps on this channel until its reply comes
  parts_.executor.post([weak = weak_from_this()] {
    if (const auto self = weak.lock(); self && !self->ended() && !self->try_end()) self->channel_->break_off();
  });
}

void Session::end(Error reason) {
  if (ended_.exchange(true)) return;
  {
    const base::LockGuard lock(end_mutex_);
    if (end_requested_) reason = *end_requested_;  // this side broke the connection
    end_requested_ = reason;
  }
  life_.stop();
  // What is still in the outbox (this side's bye, for example) is written once if the peer said bye; a broken
  // connection refuses it at once.
  writer_.end(bye_received_);
  channel_->close();
  writer_.take_back();
  reader_.drop_incomplete();
  writer_.serve_gate().close();  // calls that were held back are dropped: their replies could not be sent
  requests_.end(reason);
  if (const std::size_t lost = one_way_calls_.end(); lost > 0) parts_.handler.on_tells_lost(*this, lost, reason);
  actors_->end(reason, [self = shared_from_this(), reason] { self->parts_.handler.on_end(*self, reason); });
}

Session::Counters Session::counters() const {
  return {writer_.frames(), reader_.frames(), writer_.bytes(), bytes_in_.load()};
}

}  // namespace caftan::transport
