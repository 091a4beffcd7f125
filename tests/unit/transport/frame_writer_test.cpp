// When several threads append and write frames at once, all frames leave; none waits until the next one is appended.
#include "caftan/transport/internal/frame_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "caftan/transport/stepped_executor.hpp"

namespace caftan::transport::frame_writer_test {
namespace {

/// A channel that takes as many bytes as `room` says.
class NarrowChannel final : public Channel {
 public:
  std::size_t room = 0;
  std::size_t written = 0;
  bool beats_itself = false;        // shows life without bytes
  std::function<void()> meanwhile;  // called once, in the middle of the next write: stands for another thread

  void start(Ready) override {}
  void arm(bool, bool) override {}
  Result<std::size_t> read(const iovec*, int) override { return std::size_t{0}; }
  Result<std::size_t> write(const iovec* vectors, int count) override {
    std::size_t offered = 0;
    for (int i = 0; i < count; ++i) offered += vectors[i].iov_len;
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    const std::size_t taken = std::min(offered, room);
    room -= taken;
    written += taken;
    return taken;
  }
  bool has_unread() const override { return false; }
  void close_write() override {}
  void break_off() override {}
  void close() override {}
  int fd() const noexcept override { return -1; }
  bool beat() override { return beats_itself; }
  const char* kind() const noexcept override { return "narrow"; }
};

class FrameWriters : public ::testing::Test {
 protected:
  FrameWriters() {
    claim_->set_self(claim_);
    writer_->set_self(writer_);
  }
  /// Appends a frame of no body. Returns its size.
  std::size_t send() {
    wire::OutFrame frame;
    frame.header.kind = wire::FrameKind::ping;
    wire::Bytes bytes;
    wire::encode_frame(frame, bytes);
    const std::size_t size = bytes.size();
    EXPECT_TRUE(writer_->send(frame));
    return size;
  }

  SteppedExecutor executor_{1};
  NarrowChannel channel_;
  const std::string peer_ = "peer";
  const std::shared_ptr<ReadClaim> claim_ = std::make_shared<ReadClaim>(executor_, channel_);
  LifeWatch life_{executor_, channel_, std::nullopt, peer_};
  const std::shared_ptr<FrameWriter> writer_ = std::make_shared<FrameWriter>(
      FrameWriter::Parts{executor_, channel_, *claim_, life_, peer_}, wire::MessageLimits{}, 1 << 20);
};

TEST_F(FrameWriters, SE31_AFrameThatIsAppendedWhileLifeIsShownOnAFullChannelLeavesWithIt) {
  std::size_t sent = send();
  EXPECT_EQ(channel_.written, 0U);
  EXPECT_TRUE(claim_->wants_room()) << "the channel is full";
  channel_.room = 1 << 20;  // the channel has room now, which no runner has noticed
  channel_.meanwhile = [&] { sent += send(); };
  writer_->show_life();
  EXPECT_EQ(channel_.written, sent);
  EXPECT_FALSE(claim_->wants_room());
}

TEST_F(FrameWriters, SE9_APingIsSentOnlyWhereTheChannelCannotShowLifeItself) {
  channel_.room = 1 << 20;
  channel_.beats_itself = true;
  writer_->show_life();
  EXPECT_EQ(channel_.written, 0U);
  channel_.beats_itself = false;
  writer_->show_life();
  EXPECT_EQ(channel_.written, wire::kFrameHeaderSize);
}

TEST_F(FrameWriters, SE9_WhatWaitsIsTriedAlsoWhereTheChannelShowsLifeItself) {
  channel_.beats_itself = true;
  const std::size_t sent = send();
  channel_.room = 1 << 20;
  writer_->show_life();
  EXPECT_EQ(channel_.written, sent);
}

TEST_F(FrameWriters, WhatFindsNoRoomLeavesWhenTheChannelReportsIt) {
  std::size_t sent = send();
  channel_.meanwhile = [&] { sent += send(); };
  writer_->show_life();
  EXPECT_EQ(channel_.written, 0U);
  EXPECT_TRUE(claim_->wants_room());
  channel_.room = 1 << 20;
  writer_->on_room();
  EXPECT_EQ(channel_.written, sent);
  EXPECT_FALSE(claim_->wants_room());
}

}  // namespace
}  // namespace caftan::transport::frame_writer_test
