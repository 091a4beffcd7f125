/// The receivers of what a session reads: `FrameHandler` for the frames of calls, `ActorFrames` for the frames about
/// actors, `ReplySink` for the outcome of one request. A session knows no other code of the layers above it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/frame.hpp"
#include "caftan/wire/internal/frame_reader.hpp"

namespace caftan::transport {

class Session;

/// Receives the outcome of one request, exactly once: the reply (whose header may carry kFlagError), or an error of
/// this side.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  /// Threads: any; may be a thread that reads frames inside a wait. Must not block.
  virtual void on_reply(Result<wire::InFrame> reply) = 0;
};

/// Receives the frames of calls, and the ends of sessions. Called in the order of the frames, by one thread at a time
/// per session, and never after on_end. Must not block.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  /// Receives the manifest of a frame, before any other section of the frame is read (RR-3). Returns what goes along
  /// with the frame. An error ends the session.
  virtual Result<std::shared_ptr<void>> on_manifest(Session& session, wire::FrameKind kind,
                                                    wire::ByteView manifest) = 0;
  /// A complete call, create, fetch, method, op or cancel. An error ends the session as a protocol error.
  virtual Result<void> on_frame(const std::shared_ptr<Session>& session, wire::InFrame frame) = 0;
  /// So many one-way calls of this worker have ended at the peer.
  virtual void on_tells_ended(std::size_t /*count*/) {}
  /// The session has ended before so many one-way calls had: called at most once, before on_end.
  virtual void on_tells_lost(Session&, std::size_t /*count*/, const Error&) {}
  /// The session has ended: its requests were failed and its proxies are down. Called once.
  virtual void on_end(Session& session, const Error& reason) = 0;
};

/// Receives the frames about actors of one session.
class ActorFrames {
 public:
  virtual ~ActorFrames() = default;
  /// Called in the order of the frames, by one thread at a time, and never after `end`. Must not block. An error ends
  /// the session as a protocol error.
  virtual Result<void> on_frame(wire::InFrame frame) = 0;
  /// The session has ended. Calls `done` once, on a runner, when every proxy of the session is down.
  virtual void end(const Error& reason, std::function<void()> done) = 0;
};

}  // namespace caftan::transport
