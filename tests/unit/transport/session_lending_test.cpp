// Sessions whose channel lends: what is kept until it is taken, in which order messages come, and how such a session
// ends (docs/protocols/bulk.md). How memory of another process is read: lending_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lending_channel.hpp"
#include "session_side.hpp"

namespace caftan::transport::session_lending_test {
namespace {

using std::chrono::seconds;
using wire::FrameKind;
using wire::kLentFrom;

SessionOptions options() {
  SessionOptions options;
  options.limits.message = 100'000;
  options.limits.tensors = 64 << 20;
  options.limits.segments = 4;
  options.limits.send_queue = 10 * kLentFrom;
  options.liveness = LivenessOptions{seconds(1), seconds(5)};
  return options;
}

/// Memory whose bytes depend on their place, and whether it is still kept.
struct Memory {
  Memory(std::size_t size, std::uint64_t seed) : bytes(std::make_shared<wire::Bytes>(size)), kept(bytes) {
    for (std::size_t i = 0; i < size; ++i) (*bytes)[i] = static_cast<std::byte>((seed + i) * 31 >> 3);
    copy = *bytes;
  }
  /// Gives the memory away.
  wire::Segment segment() {
    const wire::Bytes& of = *bytes;
    return {of.data(), of.size(), std::move(bytes)};
  }
  bool is_kept() const { return !kept.expired(); }

  std::shared_ptr<wire::Bytes> bytes;
  std::weak_ptr<const wire::Bytes> kept;
  wire::Bytes copy;
};

/// Two sessions of one executor.
class Lending : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Lending() {
    auto [ours, theirs] = make_loopback_pair(executor_);
    lender_channel_ = std::make_shared<LendingChannel>(std::move(ours));
    taker_channel_ = std::make_shared<LendingChannel>(std::move(theirs));
    lender_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, lender_channel_, options());
    taker_ = std::make_unique<SessionSide>(executor_, WorkerId{2}, taker_channel_, options());
    lender_->session->start();
    taker_->session->start();
    executor_.run();
  }
  bool send(std::uint64_t call, std::vector<wire::Segment> segments) {
    wire::OutFrame frame;
    frame.header.kind = FrameKind::call;
    frame.header.call = call;
    frame.segments = std::move(segments);
    return lender_->session->writer().send(frame);
  }
  /// Runs all tasks, those too that are to run within 1 ms.
  void run_all() {
    executor_.run();
    executor_.advance(std::chrono::milliseconds(1));
  }
  std::vector<wire::InFrame>& got() { return taker_->handler.frames; }
  std::vector<std::uint64_t> calls() {
    std::vector<std::uint64_t> calls;
    for (const wire::InFrame& frame : got()) calls.push_back(frame.header.call);
    return calls;
  }

  SteppedExecutor executor_{GetParam()};
  std::shared_ptr<LendingChannel> lender_channel_;
  std::shared_ptr<LendingChannel> taker_channel_;
  std::unique_ptr<SessionSide> lender_;
  std::unique_ptr<SessionSide> taker_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Lending, ::testing::Values(1, 2, 3, 4));

TEST_P(Lending, BU2_LargeSegmentsAreReadWhereTheyLieAndKeptUntilThen) {
  Memory large(kLentFrom, 1);
  Memory small(kLentFrom - 1, 2);
  Memory larger(3 << 20, 3);
  const std::uint64_t before = lender_channel_->written;
  ASSERT_TRUE(send(1, {large.segment(), small.segment(), larger.segment()}));
  EXPECT_TRUE(large.is_kept() && larger.is_kept());
  run_all();
  ASSERT_EQ(got().size(), 1U);
  ASSERT_EQ(got()[0].segments.size(), 3U);
  EXPECT_TRUE(std::ranges::equal(got()[0].segments[0].view(), large.copy));
  EXPECT_TRUE(std::ranges::equal(got()[0].segments[1].view(), small.copy));
  EXPECT_TRUE(std::ranges::equal(got()[0].segments[2].view(), larger.copy));
  EXPECT_EQ(std::accumulate(taker_channel_->reads.begin(), taker_channel_->reads.end(), std::size_t{0}),
            kLentFrom + (3 << 20));
  EXPECT_LE(*std::max_element(taker_channel_->reads.begin(), taker_channel_->reads.end()), 512U * 1024) << "BU-7";
  EXPECT_LT(lender_channel_->written - before, kLentFrom + 1000);
  EXPECT_FALSE(large.is_kept() || larger.is_kept()) << "taken";
}

TEST_P(Lending, BU2_DP4_WhatThePeerHasNotReadIsKept) {
  Memory large(kLentFrom, 1);
  bool was_kept = false;
  taker_channel_->find = [&](std::uint64_t from) {
    was_kept = large.is_kept();
    return LendingChannel::find_here(from);
  };
  ASSERT_TRUE(send(1, {large.segment()}));
  run_all();
  EXPECT_TRUE(was_kept);
  EXPECT_FALSE(large.is_kept());
}

TEST_P(Lending, BU8_DP5_WhatWasReadDoesNotChangeWithTheMemoryOfTheLender) {
  Memory large(kLentFrom, 1);
  const std::shared_ptr<wire::Bytes> bytes = large.bytes;
  ASSERT_TRUE(send(1, {large.segment()}));
  run_all();
  std::ranges::fill(*bytes, std::byte{0});
  ASSERT_EQ(got().size(), 1U);
  EXPECT_TRUE(std::ranges::equal(got()[0].segments[0].view(), large.copy));
}

TEST_P(Lending, BU3_MessagesWithTensorsKeepTheirOrderAndOtherFramesPassThem) {
  Memory first(4 << 20, 1);
  Memory second(20, 2);
  Memory third(kLentFrom, 3);
  ASSERT_TRUE(send(1, {first.segment()}));
  ASSERT_TRUE(send(2, {second.segment()}));
  ASSERT_TRUE(send(3, {third.segment()}));
  ASSERT_TRUE(send(4, {}));
  // A frame that is sent while places are read waits for one of them at most.
  std::size_t reads = 0;
  taker_channel_->find = [&](std::uint64_t from) {
    if (++reads == 2) (void)send(5, {});
    if (reads == 4) {
      EXPECT_EQ(calls(), (std::vector<std::uint64_t>{4, 5}));
    }
    return LendingChannel::find_here(from);
  };
  run_all();
  EXPECT_EQ(calls(), (std::vector<std::uint64_t>{4, 5, 1, 2, 3}));
}

TEST_P(Lending, BU7_ARunnerGoesOnWithOtherTasksBetweenTheParts) {
  Memory large(32 << 20, 1);
  ASSERT_TRUE(send(1, {large.segment()}));
  // Of many tasks that are queued while the first part is read, some run before the last part is.
  std::size_t tasks_before = 0;
  std::size_t tasks = 0;
  taker_channel_->find = [&](std::uint64_t from) {
    const std::size_t read = taker_channel_->reads.size();
    for (int i = 0; read == 1 && i < 20; ++i) executor_.post([&] { ++tasks; });
    if (read == 64) tasks_before = tasks;
    return LendingChannel::find_here(from);
  };
  run_all();
  EXPECT_EQ(taker_channel_->reads.size(), 64U);
  EXPECT_GT(tasks_before, 0U);
  EXPECT_EQ(tasks, 20U);
  EXPECT_EQ(calls(), std::vector<std::uint64_t>{1});
}

TEST_P(Lending, BU7_SP6_AThreadThatSpinsFindsWhatIsLeftToRead) {
  Memory large(4 << 20, 1);
  std::size_t found = 0;
  taker_channel_->find = [&](std::uint64_t from) {
    found += taker_->session->look() == Look::something ? 1 : 0;
    return LendingChannel::find_here(from);
  };
  ASSERT_TRUE(send(1, {large.segment()}));
  run_all();
  EXPECT_EQ(found, 8U) << "no bytes of the channel say that there is more to read";
  EXPECT_EQ(taker_->session->look(), Look::unable);
}

TEST_P(Lending, BU6_WhatWasSentIsCountedAsWithoutLending) {
  const auto traffic = [this](bool lending) {
    lender_channel_->is_lending = lending;
    const net::Traffic before = lender_->session->writer().traffic();
    Memory large(300'000, 1);
    Memory small(10, 1);
    (void)send(1, {large.segment(), small.segment()});
    run_all();
    const net::Traffic after = lender_->session->writer().traffic();
    std::vector<std::uint64_t> sums;
    for (const FrameKind kind : {FrameKind::call, FrameKind::chunk, FrameKind::taken}) {
      sums.push_back(after.of(kind).frames - before.of(kind).frames);
      sums.push_back(after.of(kind).bytes - before.of(kind).bytes);
    }
    return sums;
  };
  const auto lent = traffic(true);
  EXPECT_FALSE(taker_channel_->reads.empty());
  EXPECT_EQ(lent, traffic(false));
}

TEST_P(Lending, BU6_CallsOfAPeerThatDoesNotTakeDoNotBegin) {
  std::vector<std::unique_ptr<Memory>> lent;
  for (std::uint64_t call = 1; call <= 12; ++call) {
    lent.push_back(std::make_unique<Memory>(kLentFrom, call));
    ASSERT_TRUE(send(call, {lent.back()->segment()}));
  }
  net::ServeGate& gate = lender_->session->writer().serve_gate();
  EXPECT_TRUE(gate.is_busy());
  run_all();
  EXPECT_FALSE(gate.is_busy()) << "all was taken";
}

TEST_P(Lending, BU2_AByeGoesBehindAllThatIsLent) {
  Memory large(1 << 20, 1);
  ASSERT_TRUE(send(1, {large.segment()}));
  lender_->session->writer().close();
  bool has_left = false;
  taker_channel_->find = [&](std::uint64_t from) {
    has_left = has_left || taker_->session->has_left();
    return LendingChannel::find_here(from);
  };
  run_all();
  EXPECT_FALSE(has_left);
  EXPECT_EQ(calls(), std::vector<std::uint64_t>{1});
  EXPECT_TRUE(lender_->session->ended() && taker_->session->ended());
}

TEST_P(Lending, BU9_ASideThatHasSaidByeStillTakes) {
  Memory large(1 << 20, 1);
  taker_->session->writer().close();
  ASSERT_TRUE(send(1, {large.segment()}));
  run_all();
  EXPECT_EQ(calls(), std::vector<std::uint64_t>{1});
  EXPECT_FALSE(large.is_kept());
  EXPECT_TRUE(lender_->session->ended() && taker_->session->ended());
  EXPECT_TRUE(taker_->session->has_left());
}

TEST_P(Lending, BU2_TheEndOfTheSessionLetsGoOfWhatWasLentAndNothingIsHandedOver) {
  Memory large(1 << 20, 1);
  ASSERT_TRUE(send(1, {large.segment()}));
  taker_channel_->find = [](std::uint64_t) { return Error(Errc::peer_down, "it has ended"); };
  run_all();
  EXPECT_TRUE(got().empty());
  ASSERT_EQ(taker_->handler.ends.size(), 1U);
  EXPECT_EQ(taker_->handler.ends[0].code(), Errc::peer_down);
  EXPECT_EQ(taker_->handler.ends[0].text(), "lost worker2: it has ended");
  EXPECT_TRUE(lender_->session->ended());
  EXPECT_FALSE(large.is_kept());
}

TEST_P(Lending, BU5_AMessageThatHasNoRoomForItsPlacesIsSentInChunks) {
  wire::Bytes body(100'000 - 8 - 8);  // with the section of sizes as long as a message may be
  Memory large(kLentFrom, 1);
  wire::OutFrame frame;
  frame.header.kind = FrameKind::call;
  frame.body = body;
  frame.segments.push_back(large.segment());
  ASSERT_TRUE(lender_->session->writer().check_size(frame));
  ASSERT_TRUE(lender_->session->writer().send(frame));
  run_all();
  ASSERT_EQ(got().size(), 1U);
  EXPECT_TRUE(std::ranges::equal(got()[0].segments[0].view(), large.copy));
  EXPECT_TRUE(taker_channel_->reads.empty());
}

/// A session whose peer is a test that writes bytes.
class Hostile : public ::testing::Test {
 protected:
  void receive(wire::ByteView bytes, bool lends = true) {
    auto [ours, theirs] = make_loopback_pair(executor_);
    peer_ = std::make_unique<BytePeer>(std::move(theirs));
    std::shared_ptr<Channel> channel = std::move(ours);
    if (lends) channel = std::make_shared<LendingChannel>(std::move(channel));
    side_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, std::move(channel), options());
    side_->session->start();
    peer_->write(bytes);
    executor_.run();
  }
  void expect_end(Errc code) {
    ASSERT_EQ(side_->handler.ends.size(), 1U);
    EXPECT_EQ(side_->handler.ends[0].code(), code) << side_->handler.ends[0].message();
    EXPECT_TRUE(side_->handler.frames.empty());
  }

  SteppedExecutor executor_{1};
  std::unique_ptr<BytePeer> peer_;
  std::unique_ptr<SessionSide> side_;
};

TEST_F(Hostile, BU9_TakenWithoutAnythingLentEndsTheSession) {
  receive(wire::make_frame(wire::header_of(FrameKind::taken)));
  expect_end(Errc::malformed_payload);
}

TEST_F(Hostile, BU9_PlacesInASessionThatReadsNoMemoryEndIt) {
  receive(wire::lending_call(1, {100}, {4096}), false);
  expect_end(Errc::malformed_payload);
}

TEST_F(Hostile, BU5_SizesBeyondTheLimitEndTheSessionBeforeMemoryIsTaken) {
  receive(wire::lending_call(1, {std::uint64_t{1} << 40}, {4096}));
  expect_end(Errc::limit_exceeded);
  EXPECT_EQ(side_->pool.cached_bytes(), 0U);
}

}  // namespace
}  // namespace caftan::transport::session_lending_test
