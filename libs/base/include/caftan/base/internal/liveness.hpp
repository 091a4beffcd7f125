/// Decides when a peer is dead and when to show it that we live. Counts bytes that progress, not whole messages, so
/// that one long message keeps its sender alive. Invariants SE-6 to SE-9: docs/protocols/session.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "caftan/base/clock.hpp"
#include "caftan/base/error.hpp"

namespace caftan {

struct LivenessOptions {
  base::Duration interval = std::chrono::seconds(1);  ///< silence of ours after which we send a ping; > 0
  base::Duration timeout = std::chrono::seconds(5);   ///< silence of the peer after which it is dead; >= 2 intervals
};

/// Threads: none of its own and no lock; the owner of the channel serializes all calls.
class Liveness {
 public:
  enum class Action {
    nothing,
    send_ping,  ///< returned once per interval until bytes go out
    dead,       ///< final: see `error`
  };

  /// @param peer  its name, for the error
  Liveness(LivenessOptions options, std::string peer, base::TimePoint now);

  /// Call it when `count` bytes were read from the channel, whether or not they complete a frame.
  void on_bytes_in(base::TimePoint now, std::size_t count) noexcept;

  /// Call it when the channel accepted `count` bytes. They postpone the next ping of this side and prove nothing about
  /// the peer: the socket buffers of a stopped process still fill.
  void on_bytes_out(base::TimePoint now, std::size_t count) noexcept;

  /// Returns what to do now. Call it no later than `next_poll`. When it is called later, this process was
  /// stopped, and that time does not count as silence of the peer (SE-8).
  /// @param unread  the channel holds unread bytes of the peer, so the peer is not silent (SE-30)
  Action poll(base::TimePoint now, bool unread);

  /// Returns when `poll` must be called next; kNever once the peer is dead.
  base::TimePoint next_poll() const noexcept;

  /// Returns peer_down with the silent time and the bytes seen; meaningful after `dead`.
  const Error& error() const noexcept { return error_; }

 private:
  LivenessOptions options_;
  std::string peer_;
  base::TimePoint heard_;   ///< when bytes last came in, moved forward by the time by which `poll` came too late
  base::TimePoint spoken_;  ///< when bytes last went out or a ping was asked for
  base::TimePoint last_poll_;
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  bool is_dead_ = false;
  Error error_;
};

}  // namespace caftan
