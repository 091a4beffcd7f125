/// The receivers of the frames of a session: `FrameHandler` those of calls, `ActorFrames` those about actors,
/// `ReplySink` the end of one request. A session knows nothing else of what lies above it.
#pragma once

#include <functional>
#include <memory>

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/frame.hpp"
#include "caftan/wire/frame_reader.hpp"

namespace caftan::transport {

class Session;

/// Receives the one end of a request: the response (whose header may carry kFlagError), or an error of this side.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  /// Threads: any; may be a thread that reads frames inside a wait. Must not block.
  virtual void on_reply(Result<wire::InFrame> reply) = 0;
};

/// What a worker does with what arrives. Called in the order of the frames, by one thread at a time per session, and
/// never after on_end. Must not block.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  /// The manifest of a frame, before anything else of it is looked at (RR-3).
  virtual Result<std::shared_ptr<void>> on_manifest(Session& session, wire::FrameKind kind,
                                                    wire::ByteView manifest) = 0;
  /// A complete call, create, fetch, method, op or cancel. An error ends the session as a protocol error.
  virtual Result<void> on_frame(const std::shared_ptr<Session>& session, wire::InFrame frame) = 0;
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
  /// The session has ended. Calls `done` once, on a runner, when each actor that had to do with the session was told.
  virtual void end(const Error& reason, std::function<void()> done) = 0;
};

}  // namespace caftan::transport
