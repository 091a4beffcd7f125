// What a session takes and what it sends: limits that both sides know, and memory for one message at a time.
#include <gtest/gtest.h>

#include <cstring>

#include "address_space.hpp"
#include "session_side.hpp"

namespace caftan::transport::session_limits_test {
namespace {

using wire::FrameKind;

net::Limits small_limits() {
  net::Limits limits;
  limits.message = 2000;
  limits.tensors = 100'000;
  limits.segments = 16;
  return limits;
}

SessionOptions with(const net::Limits& limits) { return {.limits = limits}; }

wire::Segment zeros(std::size_t size) {
  auto bytes = std::make_shared<wire::Bytes>(size);
  const std::byte* const data = bytes->data();
  return {data, size, std::move(bytes)};
}

/// Two sessions with each other. The second has the limits `theirs`, which the first knows.
class SessionLimit : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void connect(const net::Limits& ours, const net::Limits& theirs) {
    auto [here, there] = make_loopback_pair(executor_);
    a_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, std::move(here), with(ours), theirs);
    b_ = std::make_unique<SessionSide>(executor_, WorkerId{0}, std::move(there), with(theirs), ours);
    a_->session->start();
    b_->session->start();
  }
  /// @param segments  of 8 bytes each
  Result<CallId> request(std::size_t body_size, std::size_t segments) {
    const wire::Bytes body(body_size);
    wire::OutFrame frame;
    frame.header.kind = FrameKind::call;
    frame.body = body;
    for (std::size_t i = 0; i < segments; ++i) frame.segments.push_back(zeros(8));
    const std::uint64_t room = OpenRequests::room_for(body_size);
    if (auto admitted = a_->session->requests().try_acquire(room); !admitted) return admitted.error();
    return a_->session->request(frame, room, base::kNever, sink_);
  }
  void expect_alive() {
    executor_.run();
    EXPECT_TRUE(a_->handler.ends.empty());
    EXPECT_TRUE(b_->handler.ends.empty()) << b_->handler.ends[0].message();
  }

  SteppedExecutor executor_{GetParam()};
  std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
  std::unique_ptr<SessionSide> a_;
  std::unique_ptr<SessionSide> b_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, SessionLimit, ::testing::Range<std::uint64_t>(1, 4));

TEST_P(SessionLimit, T2_WI20_TheSizesOfSegmentsCountAsTheyAreSent) {
  connect(small_limits(), small_limits());
  constexpr std::size_t kSegments = 3;
  constexpr std::size_t kSection = 8 + 8 * kSegments;
  EXPECT_TRUE(request(2000 - kSection, kSegments));
  EXPECT_TRUE(request(2000, 0));
  for (std::size_t above = 1; above <= kSection; above += 5) {
    const auto refused = request(2000 - kSection + above, kSegments);
    ASSERT_FALSE(refused) << above;
    EXPECT_EQ(refused.error().code(), Errc::limit_exceeded);
    EXPECT_NE(refused.error().text().find("limits.message"), std::string::npos) << refused.error().text();
  }
  expect_alive();
  EXPECT_EQ(b_->handler.frames.size(), 2U);
}

TEST_P(SessionLimit, T2_WI20_MoreSegmentsThanEitherSideTakesAreNotSent) {
  net::Limits theirs = small_limits();
  theirs.segments = 5;
  connect(small_limits(), theirs);
  const auto refused = request(0, 6);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::limit_exceeded);
  EXPECT_EQ(refused.error().text(),
            "a message with 6 pieces of tensor memory, Limits::segments is 5: send it in several messages");
  EXPECT_TRUE(request(0, 5));
  expect_alive();
  ASSERT_EQ(b_->handler.frames.size(), 1U);
  EXPECT_EQ(b_->handler.frames[0].segments.size(), 5U);
}

TEST_P(SessionLimit, T2_WI7_MemoryIsTakenForOneMessageAfterTheOther) {
  connect(small_limits(), small_limits());
  constexpr std::uint64_t kMessages = 200;
  constexpr std::uint64_t kSize = 65'536;
  BytePeer peer([&] {
    auto [here, there] = make_loopback_pair(executor_);
    b_ = nullptr;
    b_ = std::make_unique<SessionSide>(executor_, WorkerId{0}, std::move(here), with(small_limits()));
    b_->session->start();
    return there;
  }());
  wire::Bytes sections;
  wire::Bytes size(8);
  std::memcpy(size.data(), &kSize, 8);
  wire::append_section(sections, wire::SectionType::bulk, wire::kSectionCritical, size);
  for (std::uint64_t call = 1; call <= kMessages; ++call) {
    wire::FrameHeader header = header_of(FrameKind::call, call);
    header.bulk_size = kSize;
    peer.write(make_frame(header, sections));
    executor_.run();
  }
  EXPECT_TRUE(b_->handler.ends.empty());
  for (std::uint64_t call = 1; call <= kMessages; ++call) {
    peer.write(make_frame(header_of(FrameKind::chunk), {}, wire::Bytes(kSize, std::byte{1})));
    executor_.run();
    ASSERT_EQ(b_->handler.frames.size(), 1U);
    EXPECT_EQ(b_->handler.frames[0].header.call, call);
    b_->handler.frames.clear();  // gives the block of the tensor back to the pool
  }
  // All blocks that b ever took: one for the message that was arriving, one for the message behind it, and the smallest
  // one for each frame.
  constexpr std::uint64_t kFrame = 64;
  EXPECT_LE(b_->pool.cached_bytes(), 2 * kSize + kMessages * kFrame);
}

TEST_P(SessionLimit, T2_WI22_AMessageWithoutMemoryForItsTensorsIsSkippedAndThoseBehindItArrive) {
  constexpr std::size_t kLarge = std::size_t{32} << 20;
  net::Limits limits = small_limits();
  limits.tensors = 2 * kLarge;
  connect(limits, limits);
  wire::OutFrame large;
  large.header.kind = FrameKind::call;
  const wire::Bytes body(7);
  large.body = body;
  for (const std::size_t size : {std::size_t{8}, kLarge, std::size_t{8}}) large.segments.push_back(zeros(size));
  {
    const test::AddressSpaceLimit limit(kLarge / 2);
    ASSERT_TRUE(a_->session->writer().send(large));
    ASSERT_TRUE(request(10, 2));
    executor_.run();
  }
  expect_alive();
  ASSERT_EQ(b_->handler.frames.size(), 2U);
  const wire::InFrame& skipped = b_->handler.frames[0];
  EXPECT_EQ(skipped.body.size(), 7U);
  ASSERT_FALSE(skipped.received);
  EXPECT_EQ(skipped.received.error().code(), Errc::limit_exceeded);
  EXPECT_EQ(skipped.received.error().text(),
            "the tensors could not be received: no memory for a block of 33554432 bytes");
  EXPECT_TRUE(skipped.segments.empty());
  EXPECT_TRUE(b_->handler.frames[1].received);
  EXPECT_EQ(b_->handler.frames[1].segments.size(), 2U);
}

}  // namespace
}  // namespace caftan::transport::session_limits_test
