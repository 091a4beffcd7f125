/// `FrameWriter`: writes the frames of a session. Frames are appended in order and written together where this saves
/// system calls; a bye goes behind everything else. Rules: docs/protocols/wire.md (WI-10, WI-20),
/// docs/protocols/session.md (SE-14 to SE-19, SE-35), docs/protocols/bulk.md, docs/architecture.md, "Runners".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"
#include "caftan/net/internal/outbox.hpp"
#include "caftan/net/internal/serve_gate.hpp"
#include "caftan/net/internal/traffic.hpp"
#include "caftan/transport/channel.hpp"
#include "caftan/transport/internal/life_watch.hpp"
#include "caftan/transport/internal/read_claim.hpp"
#include "caftan/transport/poller.hpp"
#include "caftan/wire/internal/out_frame.hpp"
#include "caftan/wire/message_limits.hpp"

namespace caftan::transport {

/// Threads: any, all methods but `set_self`.
class FrameWriter final : public Flushable {
 public:
  struct Parts {
    PollingExecutor& executor;
    Channel& channel;
    ReadClaim& claim;  ///< arms the channel
    LifeWatch& life;
    const std::string& peer;  ///< its name, for errors
  };
  /// @param sendable  the limits of both sides @param window  bytes that may wait before calls of the peer do (SE-35)
  FrameWriter(const Parts& parts, const wire::MessageLimits& sendable, std::uint64_t window)
      : parts_(parts), sendable_(sendable), window_(window), serve_gate_(window) {}
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;
  /// Called once, first. @param self  this object; its owner keeps the session
  void set_self(std::weak_ptr<FrameWriter> self) noexcept { self_ = std::move(self); }

  /// Appends a frame to the lane. Returns false when the session ends: then the frame is not sent.
  /// @param frame     its segments are moved from when it was accepted
  /// @param may_wait  the frame may leave together with later ones of this thread; none: it is written at once
  bool send(wire::OutFrame& frame, std::optional<FlushBy> may_wait = std::nullopt);
  /// Sends bye behind all frames that were appended so far, and accepts no more. Only the first reason counts.
  /// @param reason  sent to the peer if it is an error
  void close(const Error& reason = {});
  /// As close, after the peer's bye was read: behind this side's bye the connection is closed for writing.
  void answer_bye();
  /// Ends the lane: no frame is accepted any more. @param try_rest  makes one attempt to write what is queued
  void end(bool try_rest);

  /// Sends, with what is written next or after 1 ms, that the segments which the peer lent with its oldest message have
  /// been read; also behind this side's bye.
  void send_taken();
  /// The peer has read the segments that the oldest message lent. Errors: malformed_payload (none has lent any).
  Result<void> on_taken();
  /// A one-way call of the peer has ended, which had taken `room` of the window. Reports it with others that have, at
  /// the latest after 1 ms.
  void count_ended(std::uint64_t room);
  /// Lets go of all that is lent. Precondition: `end` was called, and the peer can know that the session has ended.
  void take_back();

  /// The channel has room again.
  void on_room();
  /// Writes queued bytes, or a ping if none are queued.
  void show_life();
  void flush() override;

  /// Compares the parts of `frame` with the limits of this side and of the peer. Errors: limit_exceeded, with the key
  /// of the first limit that is exceeded.
  Result<void> check_size(const wire::OutFrame& frame) const;
  /// Returns `error` with its text shortened so that a frame of the error and `beside` further bytes keeps the limits
  /// (WI-20).
  Error fitting(const Error& error, std::size_t beside = 0) const;

  /// Decides whether a call of the peer may begin (SE-35).
  net::ServeGate& serve_gate() noexcept { return serve_gate_; }
  /// Returns the frames and bytes that were appended to the lane, also those that the peer may never read.
  net::Traffic traffic() const;
  std::uint64_t frames() const noexcept { return frames_.load(std::memory_order_relaxed); }
  /// Returns how many bytes were written.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  enum class Phase : std::uint8_t {
    open,
    closing,  // no frame is accepted any more; a bye follows behind the last byte
    bye_queued,
    ended,
  };
  enum class Writing : std::uint8_t {
    idle,
    busy,    // a thread writes, without the lock
    again,   // the writing thread must look for more bytes before it stops
    failed,  // the connection accepts no bytes any more
  };

  static constexpr std::size_t kNoBound = std::numeric_limits<std::size_t>::max();
  bool may_lend(const wire::OutFrame& frame) const;
  void append_locked(wire::OutFrame& frame) CAFTAN_REQUIRES(mutex_);
  void flush_taken_locked() CAFTAN_REQUIRES(mutex_);
  void append_ended_locked() CAFTAN_REQUIRES(mutex_);
  void append_bye_locked() CAFTAN_REQUIRES(mutex_);
  void close_locked(const Error& reason) CAFTAN_REQUIRES(mutex_);
  void flush_locked(std::size_t enough = kNoBound) CAFTAN_REQUIRES(mutex_);
  bool take_again_locked() noexcept CAFTAN_REQUIRES(mutex_);
  void watch_backlog_locked() CAFTAN_REQUIRES(mutex_);

  const Parts parts_;
  const wire::MessageLimits sendable_;
  const std::uint64_t window_;
  net::ServeGate serve_gate_;
  std::weak_ptr<FrameWriter> self_;

  mutable base::Mutex mutex_;
  net::Outbox outbox_ CAFTAN_GUARDED_BY(mutex_);
  net::Traffic traffic_ CAFTAN_GUARDED_BY(mutex_);
  std::optional<FlushBy> flush_due_ CAFTAN_GUARDED_BY(mutex_);
  unsigned held_back_ CAFTAN_GUARDED_BY(mutex_) = 0;  // frames appended and not offered for writing yet
  Phase phase_ CAFTAN_GUARDED_BY(mutex_) = Phase::open;
  Writing writing_ CAFTAN_GUARDED_BY(mutex_) = Writing::idle;
  bool peer_has_left_ CAFTAN_GUARDED_BY(mutex_) = false;
  bool taken_waits_ CAFTAN_GUARDED_BY(mutex_) = false;  // a timer writes what was appended by send_taken
  Error farewell_ CAFTAN_GUARDED_BY(mutex_);            // goes with bye
  /// One-way calls of the peer that have ended, as far as they are not reported.
  struct Ended {
    std::uint64_t count = 0;
    std::uint64_t room = 0;
    bool waits = false;  // a timer reports them
  } ended_ CAFTAN_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> frames_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace caftan::transport
