/// A session: the conversation of two incarnations over one channel, after the handshake. It reads frames without
/// trusting them and hands them to their receivers. Frames leave through its FrameWriter; its OpenRequests keeps
/// requests until they end. Rules: docs/protocols/wire.md and docs/protocols/session.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "caftan/base/ids.hpp"
#include "caftan/base/internal/liveness.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/net/limits.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/transport/internal/frame_handler.hpp"
#include "caftan/transport/internal/frame_writer.hpp"
#include "caftan/transport/internal/life_watch.hpp"
#include "caftan/transport/internal/one_way_calls.hpp"
#include "caftan/transport/internal/open_requests.hpp"
#include "caftan/transport/internal/read_claim.hpp"
#include "caftan/transport/poller.hpp"
#include "caftan/wire/internal/block_pool.hpp"
#include "caftan/wire/internal/frame_reader.hpp"
#include "caftan/wire/internal/out_frame.hpp"

namespace caftan::transport {

struct PeerIdentity {
  WorkerLife life;
  std::string name;
  net::Limits limits;          ///< what the peer takes, as its handshake has said
  std::uint64_t features = 0;  ///< bits that both sides can use
};

struct SessionOptions {
  net::Limits limits;
  /// Nothing: the peer cannot fall silent without the end of this process.
  std::optional<LivenessOptions> liveness = LivenessOptions();
};

class Session final : public std::enable_shared_from_this<Session>, public ClaimableSource {
 public:
  struct Parts {
    PollingExecutor& executor;
    wire::BlockPool& pool;
    FrameHandler& handler;
  };

  static std::shared_ptr<Session> make(Parts parts, PeerIdentity peer, std::uint64_t connection,
                                       std::shared_ptr<Channel> channel, const SessionOptions& options);
  /// Sets the receiver of the frames about actors. Called once, before `start`.
  void set_actors(std::unique_ptr<ActorFrames> actors) noexcept { actors_ = std::move(actors); }
  /// Precondition: they are set.
  ActorFrames& actors() noexcept { return *actors_; }
  /// Begins to read, and to check that the peer lives. Precondition: the actors that the peer's first frame may address
  /// are exported.
  /// @param early  bytes that arrived behind the handshake
  void start(wire::ByteView early = {});
  ~Session() override;

  const PeerIdentity& peer() const noexcept { return peer_; }
  /// Distinguishes sessions with the same peer.
  std::uint64_t connection() const noexcept { return connection_; }
  const char* channel_kind() const noexcept { return channel_->kind(); }
  std::string channel_note() const { return channel_->note(); }
  std::string peer_place() const { return channel_->peer_place(); }
  const net::Limits& limits() const noexcept { return limits_; }
  bool ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  /// Returns whether the peer's bye was read.
  bool has_left() const noexcept { return bye_received_; }
  /// Returns the reason in the peer's bye: Errc::ok if the peer left in good order. Precondition: has_left().
  const Error& farewell() const noexcept { return farewell_; }
  wire::BlockPool& pool() noexcept { return parts_.pool; }

  /// Sends all frames that are no requests; `FrameWriter::close` ends the session in order, once the peer's bye has
  /// come.
  FrameWriter& writer() noexcept { return writer_; }
  const FrameWriter& writer() const noexcept { return writer_; }
  /// Returns the requests under way, and with them the window in which further ones take room.
  OpenRequests& requests() noexcept { return requests_; }
  const OpenRequests& requests() const noexcept { return requests_; }

  /// Returns the calls without a reply that the peer has not ended.
  OneWayCalls& one_way_calls() noexcept { return one_way_calls_; }

  /// Sends a request that has taken `room`, which is given back when the request ends. The sink is called exactly once;
  /// if an error is returned, it is never called, and nothing was sent. The header says how much time is left.
  /// Errors: overloaded (too many requests), limit_exceeded, peer_down.
  Result<CallId> request(wire::OutFrame& frame, std::uint64_t room, base::TimePoint deadline,
                         const std::shared_ptr<ReplySink>& sink);
  /// Ends the session now, as if the connection had broken.
  void abort(Error reason);

  struct Counters {
    std::uint64_t frames_out = 0, frames_in = 0, bytes_out = 0, bytes_in = 0;
  };
  Counters counters() const;

  bool claim() override { return !ended() && claim_.claim(); }
  int claim_fd() const noexcept override { return channel_->fd(); }
  bool try_sleep() override { return !reader_.has_place() && channel_->try_sleep(); }
  void wake(bool readable) override { channel_->wake(readable); }
  Look look() const override { return reader_.has_place() ? Look::something : channel_->look(); }
  void stay_awake() override { channel_->stay_awake(); }
  bool read_claimed() override;
  std::weak_ptr<ClaimableSource> release(bool may_defer) override;
  void end_deferral() override { claim_.end_deferral(); }
  bool begin_spin() override { return !ended() && claim_.begin_spin(); }
  Look look_as_runner() const override { return claim_.look_as_runner(); }
  void end_spin() override { claim_.end_spin(); }
  void read_as_runner() override { on_ready(true, false); }

 private:
  Session(Parts parts, PeerIdentity peer, std::uint64_t connection, std::shared_ptr<Channel> channel,
          const SessionOptions& options);

  void on_ready(bool readable, bool writable);
  // Threads: the one that has the turn to read.
  enum class ReadOutcome { drained, more, ended };
  ReadOutcome read_some();
  Result<void> read_place();
  void read_soon();
  Result<void> handle_frames();
  Result<void> dispatch(wire::InFrame frame);
  Result<void> on_bye(const wire::InFrame& frame);
  void end(Error reason);

  void request_end(Error reason);
  bool end_is_requested() noexcept;
  bool try_end();
  void on_silence(const Error& error);
  Error left() const;

  const Parts parts_;
  const PeerIdentity peer_;
  const std::uint64_t connection_;
  const net::Limits limits_;
  const std::shared_ptr<Channel> channel_;
  std::unique_ptr<ActorFrames> actors_;
  ReadClaim claim_;
  LifeWatch life_;
  FrameWriter writer_;
  OpenRequests requests_;
  OneWayCalls one_way_calls_;
  wire::FrameReader reader_;
  std::atomic<std::uint64_t> bytes_in_{0};
  std::atomic<bool> bye_received_{false};
  Error farewell_;  // the reason in the peer's bye; constant once bye_received_ is set
  base::Mutex end_mutex_;
  std::optional<Error> end_requested_ CAFTAN_GUARDED_BY(end_mutex_);  // why the session is to end
  // Set behind end_requested_. Read and written by read-modify-write alone (see `end_is_requested`).
  std::atomic<unsigned> end_is_requested_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace caftan::transport
