/// A session: the conversation of two incarnations over one channel, after the handshake. Sends frames in order, reads
/// them without trusting them, and keeps the table of requests in flight. Frames about actors go to an `ActorFrames`.
/// Rules: docs/protocols/wire.md and docs/protocols/session.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caftan/base/ids.hpp"
#include "caftan/net/admission.hpp"
#include "caftan/net/handshake.hpp"
#include "caftan/net/liveness.hpp"
#include "caftan/net/outbox.hpp"
#include "caftan/net/request_table.hpp"
#include "caftan/net/serve_gate.hpp"
#include "caftan/net/traffic.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/transport/frame_handler.hpp"
#include "caftan/wire/block_pool.hpp"
#include "caftan/wire/frame.hpp"
#include "caftan/wire/frame_reader.hpp"
#include "caftan/wire/message_limits.hpp"
#include "caftan/wire/out_frame.hpp"

namespace caftan::transport {

struct PeerIdentity {
  WorkerId id;
  std::string name;
  Incarnation incarnation;
  net::PeerLimits limits;      ///< what it takes, as it said in the handshake
  std::uint64_t features = 0;  ///< bits that both sides can use
};

struct SessionLimits : wire::MessageLimits {
  std::size_t requests = 65536;                                           ///< outstanding to a peer
  std::uint64_t window = std::uint64_t{512} << 20;                        ///< bytes of requests outstanding to a peer
  std::optional<net::LivenessOptions> liveness = net::LivenessOptions();  ///< none: the peer cannot fall silent alone
};

class Session final : public std::enable_shared_from_this<Session>, public ClaimableSource, public Flushable {
 public:
  struct Parts {
    PollingExecutor& executor;
    wire::BlockPool& pool;
    FrameHandler& handler;
  };

  static std::shared_ptr<Session> make(Parts parts, PeerIdentity peer, std::uint64_t connection,
                                       std::shared_ptr<Channel> channel, const SessionLimits& limits);
  /// Sets the receiver of the frames about actors. Called once, before `start`.
  void set_actors(std::unique_ptr<ActorFrames> actors) noexcept { actors_ = std::move(actors); }
  /// Precondition: they are set.
  ActorFrames& actors() noexcept { return *actors_; }
  /// Begins to read and to watch over the peer. What is to be exported from the first frame on is exported before.
  /// @param early  bytes that arrived behind the handshake
  void start(wire::ByteView early = {});
  ~Session() override;

  const PeerIdentity& peer() const noexcept { return peer_; }
  /// Tells sessions with the same peer apart.
  std::uint64_t connection() const noexcept { return connection_; }
  const char* channel_kind() const noexcept { return channel_->kind(); }
  std::string peer_place() const { return channel_->peer_place(); }
  const SessionLimits& limits() const noexcept { return limits_; }
  bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  /// Returns whether the peer said good-bye.
  bool has_left() const noexcept { return bye_received_; }
  /// Returns why the peer said good-bye: Errc::ok if in good order. Precondition: it has left.
  const Error& farewell() const noexcept { return farewell_; }
  wire::BlockPool& pool() noexcept { return parts_.pool; }

  /// Hands a frame to the lane. Returns false when the session has ended: nothing was registered and nothing leaves.
  /// @param frame   its segments are moved from when it was accepted
  /// @param urgent  written at once; otherwise together with what else this thread sends before it sleeps
  bool send(wire::OutFrame& frame, bool urgent = true);

  /// Returns what a request of `size` bytes takes of the peer's window: itself and room for its reply.
  static std::uint64_t room_for(std::uint64_t size) noexcept;
  /// Takes room in the window. Errors: overloaded (it is full), peer_down.
  Result<void> try_acquire(std::uint64_t room);
  /// As try_acquire, and waits in line for it. Errors: timeout, peer_down. Blocks; not for threads that poll.
  Result<void> acquire(std::uint64_t room, TimePoint deadline);
  void give_back(std::uint64_t room) { window_.release(room); }
  /// Asked before a call of the peer begins (SE-35).
  net::ServeGate& serve_gate() noexcept { return serve_gate_; }

  /// Sends a request that has taken `room`, which goes back with its end. The sink gets exactly one end unless an error
  /// is returned; then nothing was sent. Errors: overloaded (too many requests), limit_exceeded, peer_down.
  Result<CallId> request(wire::OutFrame& frame, std::uint64_t room, TimePoint deadline,
                         const std::shared_ptr<ResponseSink>& sink);

  /// Errors: limit_exceeded, naming the limit, of this side or the peer's, that `frame` does not keep.
  Result<void> check_size(const wire::OutFrame& frame) const;
  /// Returns `error` with so little text that a frame of nothing else but `beside` bytes keeps these limits (WI-20).
  Error fitting(const Error& error, std::size_t beside = 0) const;

  /// Gives up: the sink gets `reason` unless its end came already, and the peer is told.
  void cancel(CallId call, Error reason);

  /// Sends bye behind everything handed over so far. The peer drains, answers bye, and the session ends in order.
  /// @param reason  told to the peer if it is an error
  void close(const Error& reason = {});
  /// Ends the session now, as if the connection had broken.
  void abort(Error reason);

  struct Counters {
    std::uint64_t frames_out = 0, frames_in = 0, bytes_out = 0, bytes_in = 0;
  };
  Counters counters() const;
  /// Returns what was handed to the lane, also what the peer may never read. Threads: any.
  net::Traffic traffic() const;
  std::size_t requests_in_flight() const { return requests_.size(); }

  bool claim() override;
  int claim_fd() const noexcept override { return channel_->fd(); }
  bool read_claimed() override;
  std::weak_ptr<ClaimableSource> release(bool may_defer) override;
  void end_deferral() override;
  void flush() override;

 private:
  enum class Reader : std::uint8_t {
    poller,
    waiter,
    nobody,  // for a moment: a thread that has just read its answer is expected back, see `release`
  };
  struct Pending {
    std::shared_ptr<ResponseSink> sink;
    std::uint64_t bytes = 0;
  };
  Session(Parts parts, PeerIdentity peer, std::uint64_t connection, std::shared_ptr<Channel> channel,
          const SessionLimits& limits);

  // Reading: all under reading_.
  void on_ready(bool readable, bool writable);
  enum class ReadOutcome { drained, more, ended };
  ReadOutcome read_some();
  Result<void> handle_frames();
  Result<void> dispatch(wire::InFrame frame);
  void end(Error reason);

  bool hand_over(wire::OutFrame& frame, std::optional<FlushBy> may_wait);
  void append_locked(wire::OutFrame& frame);
  static constexpr std::size_t kNoBound = std::numeric_limits<std::size_t>::max();
  void flush_locked(std::unique_lock<std::mutex>& lock, std::size_t enough = kNoBound);
  void watch_backlog_locked();
  void arm_locked();
  void read_by_poller_locked();
  void watch_deferral(std::uint64_t claims_seen);
  void arm_expiry(TimePoint deadline);
  void expire_requests();
  void watch_life();
  void show_life();
  void fail(Pending pending, const Error& error);
  Error left() const;

  const Parts parts_;
  const PeerIdentity peer_;
  const std::uint64_t connection_;
  const SessionLimits limits_;
  const wire::MessageLimits sendable_;  // what both sides take
  const std::shared_ptr<Channel> channel_;
  std::unique_ptr<ActorFrames> actors_;
  std::atomic<bool> ended_{false};

  // Sending.
  mutable std::mutex out_mutex_;
  net::Outbox outbox_;
  net::Traffic traffic_;
  std::optional<FlushBy> flush_due_;
  unsigned held_back_ = 0;    // frames appended and not offered for writing yet
  bool writing_ = false;      // a thread writes, without the lock
  bool write_again_ = false;  // it is to look once more
  bool want_write_ = false;
  bool write_failed_ = false;
  bool closing_ = false;  // nothing more is accepted; bye follows behind the last byte
  bool bye_queued_ = false;
  Error own_farewell_;  // goes with bye
  Reader reader_ = Reader::poller;
  std::uint64_t claims_ = 0;
  bool deferral_watched_ = false;  // a task is posted that ends it

  net::RequestTable<Pending> requests_;
  net::AdmissionWindow window_;
  net::ServeGate serve_gate_;
  std::mutex expiry_mutex_;
  std::atomic<TimePoint> expiry_armed_{kNever};  // written under expiry_mutex_; the earliest task that is posted

  // Reading: one thread at a time.
  std::atomic<bool> reading_{false};
  wire::FrameReader frames_;
  bool work_queued_ = false;          // a frame was handed to runners
  std::uint32_t answers_in_row_ = 0;  // frames read since one that was no answer
  std::atomic<bool> bye_received_{false};
  Error farewell_;  // of the peer; constant once bye_received_ is set

  std::mutex end_mutex_;
  std::optional<Error> end_requested_;
  std::mutex liveness_mutex_;
  std::optional<net::Liveness> liveness_;
  std::atomic<std::uint64_t> frames_out_{0}, bytes_out_{0}, bytes_in_{0};
};

}  // namespace caftan::transport
