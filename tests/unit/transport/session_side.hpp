/// One worker's side of a session without a worker: the session over one end of a loopback channel, and receivers that
/// keep the frames. Shared by the tests of sessions and of actors and by the fuzz target.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caftan/transport/internal/session.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "made_frames.hpp"

namespace caftan::transport {

/// Keeps what a session hands over.
class RecordingHandler final : public FrameHandler {
 public:
  Result<std::shared_ptr<void>> on_manifest(Session&, wire::FrameKind, wire::ByteView manifest) override {
    manifests.emplace_back(reinterpret_cast<const char*>(manifest.data()), manifest.size());
    return std::shared_ptr<void>(std::make_shared<std::string>(manifests.back()));
  }
  Result<void> on_frame(const std::shared_ptr<Session>&, wire::InFrame frame) override {
    frames.push_back(std::move(frame));
    return {};
  }
  void on_tells_ended(std::size_t count) override { tells_ended += count; }
  void on_tells_lost(Session&, std::size_t count, const Error&) override { tells_lost += count; }
  void on_end(Session&, const Error& reason) override { ends.push_back(reason); }

  std::size_t tells_ended = 0;
  std::size_t tells_lost = 0;
  std::vector<std::string> manifests;
  std::vector<wire::InFrame> frames;
  std::vector<Error> ends;
};

/// Keeps the reply or error with which a request ends.
class RecordingSink final : public ReplySink {
 public:
  void on_reply(Result<wire::InFrame> reply) override { ends.push_back(std::move(reply)); }
  std::vector<Result<wire::InFrame>> ends;
};

/// Keeps the frames about actors. There are no actors.
class RecordingActors final : public ActorFrames {
 public:
  RecordingActors(base::Executor& executor, std::vector<wire::InFrame>& frames)
      : executor_(executor), frames_(frames) {}
  Result<void> on_frame(wire::InFrame frame) override {
    frames_.push_back(std::move(frame));
    return {};
  }
  void end(const Error&, std::function<void()> done) override { executor_.post(std::move(done)); }

 private:
  base::Executor& executor_;
  std::vector<wire::InFrame>& frames_;
};

class SessionSide {
 public:
  /// @param attach  sets the receiver of the frames about actors; without, they are kept in `actor_frames`
  SessionSide(SteppedExecutor& executor, WorkerId peer, std::shared_ptr<Channel> channel, const SessionOptions& options,
              const net::Limits& peer_takes = {}, const std::function<void(Session&)>& attach = {})
      : executor_(executor) {
    session = Session::make({executor, pool, handler},
                            {{peer, Incarnation{peer.value + 1}}, "worker" + std::to_string(peer.value), peer_takes}, 1,
                            std::move(channel), options);
    if (attach) {
      attach(*session);
    } else {
      session->set_actors(std::make_unique<RecordingActors>(executor, actor_frames));
    }
  }
  /// Ends the session and runs the executor until no task is left.
  ~SessionSide() {
    session->abort(Error(Errc::shut_down, "the test is over"));
    executor_.run();
    session = nullptr;
    executor_.run();
  }
  SessionSide(const SessionSide&) = delete;
  SessionSide& operator=(const SessionSide&) = delete;

 private:
  SteppedExecutor& executor_;

 public:
  wire::BlockPool pool;
  RecordingHandler handler;
  std::vector<wire::InFrame> actor_frames;
  std::shared_ptr<Session> session;
};

/// The other end of a channel, without a session: the test writes any bytes and reads the bytes that came.
class BytePeer {
 public:
  struct Frame {
    wire::FrameHeader header;
    wire::Bytes payload;
  };

  explicit BytePeer(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {
    channel_->start([](bool, bool) {});
  }
  void write(wire::ByteView bytes) {
    const iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
    (void)channel_->write(&vector, 1);
  }
  void close_write() { channel_->close_write(); }
  void close() { channel_->close(); }
  /// Returns the kinds of the frames that came since the last look.
  std::vector<wire::FrameKind> read_kinds() {
    std::vector<wire::FrameKind> kinds;
    for (const Frame& frame : read()) kinds.push_back(frame.header.kind);
    return kinds;
  }
  std::vector<Frame> read() {
    std::byte buffer[4096];
    const iovec vector{buffer, sizeof buffer};
    for (auto got = channel_->read(&vector, 1); got && *got > 0; got = channel_->read(&vector, 1)) {
      wire::append(unread_, {buffer, *got});
    }
    std::vector<Frame> frames;
    while (unread_.size() >= wire::kFrameHeaderSize) {
      const wire::FrameHeader header = wire::decode_header(unread_.data()).value();
      const std::size_t size = wire::kFrameHeaderSize + header.payload_size();
      if (unread_.size() < size) break;
      const auto end = unread_.begin() + static_cast<std::ptrdiff_t>(size);
      frames.push_back({header, {unread_.begin() + wire::kFrameHeaderSize, end}});
      unread_.erase(unread_.begin(), end);
    }
    return frames;
  }

 private:
  const std::shared_ptr<Channel> channel_;
  wire::Bytes unread_;
};

}  // namespace caftan::transport
