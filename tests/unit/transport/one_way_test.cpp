// One-way calls of a session whose peer is a test that writes bytes: what is kept, what gives room back, what is
// reported and when (TL-3 to TL-5).
#include "caftan/transport/internal/one_way_calls.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "session_side.hpp"

namespace caftan::transport::one_way_test {
namespace {

using std::chrono::milliseconds;
using wire::FrameKind;

class OneWay : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static SessionOptions options() {
    SessionOptions options;
    options.limits.send_queue = 10'000;
    options.limits.pending_calls = 100;
    options.liveness = std::nullopt;
    return options;
  }
  OneWay() {
    auto [ours, theirs] = make_loopback_pair(executor_);
    peer_ = std::make_unique<BytePeer>(std::move(theirs));
    side_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, std::move(ours), options());
    side_->session->start();
  }
  Session& session() { return *side_->session; }
  /// Sends a one-way call of so many bytes. Returns whether there was room, and it was sent.
  bool send(std::size_t size, std::shared_ptr<const void> keep = nullptr) {
    const wire::Bytes body(size);
    wire::OutFrame frame;
    frame.header.kind = FrameKind::call;
    frame.body = body;
    const std::uint64_t room = OneWayCalls::room_for(size);
    if (!session().requests().try_acquire(room)) return false;
    return session().one_way_calls().send(frame, room, std::move(keep));
  }
  void report_ended(std::uint64_t count) {
    peer_->write(make_frame(wire::header_of(FrameKind::ended, count)));
    executor_.run();
  }
  /// Returns the numbers in the `ended` frames that have come to the peer since the last look.
  std::vector<std::uint64_t> ended_frames() {
    executor_.run();
    std::vector<std::uint64_t> numbers;
    for (const BytePeer::Frame& frame : peer_->read()) {
      if (frame.header.kind == FrameKind::ended) numbers.push_back(frame.header.call);
    }
    return numbers;
  }

  SteppedExecutor executor_{GetParam()};
  std::unique_ptr<BytePeer> peer_;
  std::unique_ptr<SessionSide> side_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, OneWay, ::testing::Range<std::uint64_t>(1, 6));

TEST_P(OneWay, TL5_TheEndGivesRoomBackAndLetsGoOfTheObject) {
  const auto object = std::make_shared<int>(1);
  EXPECT_TRUE(send(6000, object));
  EXPECT_FALSE(send(6000)) << "two do not fit into the window";
  EXPECT_EQ(object.use_count(), 2);
  report_ended(1);
  EXPECT_EQ(object.use_count(), 1);
  EXPECT_EQ(side_->handler.tells_ended, 1U);
  EXPECT_TRUE(send(6000));
}

TEST_P(OneWay, TL5_TheNumberOfOpenOnesIsLimitedAsThatOfCalls) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(send(1)) << i;
  EXPECT_FALSE(send(1));
  report_ended(40);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(send(1)) << i;
  EXPECT_FALSE(send(1));
}

TEST_P(OneWay, TL5_MoreEndsThanOpenCallsEndTheSession) {
  EXPECT_TRUE(send(1));
  report_ended(2);
  ASSERT_EQ(side_->handler.ends.size(), 1U);
  EXPECT_EQ(side_->handler.ends[0].code(), Errc::malformed_payload);
}

TEST_P(OneWay, TL3_TheEndOfTheSessionCountsWhatWasOpen) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(send(10));
  report_ended(2);
  peer_->close();
  executor_.run();
  EXPECT_EQ(side_->handler.tells_lost, 3U);
  EXPECT_EQ(side_->handler.ends.size(), 1U);
  wire::OutFrame frame;
  frame.header.kind = FrameKind::call;
  EXPECT_FALSE(session().one_way_calls().send(frame, 0, nullptr)) << "nothing is handed over any more";
}

TEST_P(OneWay, TL5_EndsAreReportedTogetherAtOnceOrAfterAMillisecond) {
  for (int i = 0; i < 3; ++i) session().writer().count_ended(1);
  EXPECT_TRUE(ended_frames().empty());
  executor_.advance(milliseconds(1));
  EXPECT_EQ(ended_frames(), std::vector<std::uint64_t>{3});
  for (int i = 0; i < 64; ++i) session().writer().count_ended(1);
  EXPECT_EQ(ended_frames(), std::vector<std::uint64_t>{64});
  session().writer().count_ended(3000);
  EXPECT_EQ(ended_frames(), std::vector<std::uint64_t>{1}) << "more than a quarter of the window";
  executor_.advance(milliseconds(5));
  EXPECT_TRUE(ended_frames().empty()) << "all was reported";
}

TEST_P(OneWay, TL5_ABarelyEndedCallIsReportedBeforeTheBye) {
  session().writer().count_ended(1);
  session().writer().close();
  executor_.run();
  EXPECT_EQ(peer_->read_kinds(), (std::vector{FrameKind::ended, FrameKind::bye}));
}

}  // namespace
}  // namespace caftan::transport::one_way_test
