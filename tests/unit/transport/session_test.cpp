// A session whose peer is a test that writes bytes: order, limits, requests, time, and every way to end.
#include "caftan/transport/internal/session.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "caftan/wire/archive.hpp"
#include "session_side.hpp"

namespace caftan::transport::session_test {
namespace {

using std::chrono::seconds;
using wire::bulk_call;
using wire::bulk_sections;
using wire::chunk;
using wire::FrameKind;

class Sessions : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static SessionOptions options() {
    SessionOptions options;
    options.limits.message = 100'000;
    options.limits.tensors = 100'000;
    options.limits.segments = 4;
    options.limits.send_queue = 10'000;
    options.liveness = LivenessOptions{seconds(1), seconds(5)};
    return options;
  }
  Sessions() {
    auto [ours, theirs] = make_loopback_pair(executor_);
    peer_ = std::make_unique<BytePeer>(std::move(theirs));
    side_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, std::move(ours), options());
    side_->session->start();
  }
  Session& session() { return *side_->session; }
  RecordingHandler& got() { return side_->handler; }
  void receive(wire::ByteView bytes) {
    peer_->write(bytes);
    executor_.run();
  }
  Result<CallId> request(std::size_t size, base::TimePoint deadline = base::kNever) {
    wire::Bytes body(size);
    wire::OutFrame frame;
    frame.header.kind = FrameKind::call;
    frame.body = body;
    const std::uint64_t room = OpenRequests::room_for(size);
    if (auto admitted = session().requests().try_acquire(room); !admitted) return admitted.error();
    return session().request(frame, room, deadline, sink_);
  }
  void expect_end(Errc code) {
    executor_.run();
    ASSERT_EQ(got().ends.size(), 1U);
    EXPECT_EQ(got().ends[0].code(), code) << got().ends[0].message();
    EXPECT_TRUE(session().ended());
    wire::OutFrame frame;
    frame.header.kind = FrameKind::ping;
    EXPECT_FALSE(session().writer().send(frame));
  }

  SteppedExecutor executor_{GetParam()};
  std::shared_ptr<RecordingSink> sink_ = std::make_shared<RecordingSink>();
  std::unique_ptr<BytePeer> peer_;
  std::unique_ptr<SessionSide> side_;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Sessions, ::testing::Range<std::uint64_t>(1, 6));

// ---- reading

TEST_P(Sessions, WI4_RR3_TheManifestIsReadBeforeTheRestIsThere) {
  wire::Bytes sections = bulk_sections({8});
  wire::Bytes manifest(3, std::byte{'m'});
  wire::append_section(sections, wire::SectionType::rrefs, wire::kSectionCritical, manifest);
  wire::FrameHeader header = header_of(FrameKind::call, 1);
  header.bulk_size = 8;
  receive(make_frame(header, sections));
  EXPECT_EQ(got().manifests, std::vector<std::string>{"mmm"});
  EXPECT_TRUE(got().frames.empty());
  receive(chunk(8, std::byte{2}));
  ASSERT_EQ(got().frames.size(), 1U);
  EXPECT_EQ(*std::static_pointer_cast<std::string>(got().frames[0].manifest), "mmm");
}

TEST_P(Sessions, APingIsAnswered) {
  receive(make_frame(header_of(FrameKind::ping)));
  EXPECT_EQ(peer_->read_kinds(), std::vector{FrameKind::pong});
}

TEST_P(Sessions, WI2_WI12_WhatBreaksTheRulesEndsTheSessionTyped) {
  struct Case {
    wire::Bytes bytes;
    Errc code;
  };
  wire::FrameHeader wrong_kind = header_of(FrameKind::call);
  wrong_kind.kind = static_cast<FrameKind>(200);
  wire::Bytes critical;
  wire::append_section(critical, static_cast<wire::SectionType>(77), wire::kSectionCritical, {});
  const std::vector<Case> cases{
      {make_frame(wrong_kind), Errc::malformed_payload},
      {make_frame(header_of(FrameKind::call), critical), Errc::protocol_mismatch},
      {bulk_call(1, {1, 1, 1, 1, 1}), Errc::limit_exceeded},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    side_ = nullptr;
    auto [ours, theirs] = make_loopback_pair(executor_);
    peer_ = std::make_unique<BytePeer>(std::move(theirs));
    side_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, std::move(ours), options());
    side_->session->start();
    receive(cases[i].bytes);
    expect_end(cases[i].code);
    EXPECT_EQ(got().ends[0].worker(), "worker1");
  }
}

TEST_P(Sessions, WI1_BytesBehindTheHandshakeBelongToTheSession) {
  side_ = nullptr;
  auto [ours, theirs] = make_loopback_pair(executor_);
  peer_ = std::make_unique<BytePeer>(std::move(theirs));
  side_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, std::move(ours), options());
  const wire::Bytes frame = make_frame(header_of(FrameKind::call, 9), {}, wire::Bytes(10));
  side_->session->start(wire::ByteView(frame).first(50));
  receive(wire::ByteView(frame).subspan(50));
  ASSERT_EQ(got().frames.size(), 1U);
  EXPECT_EQ(got().frames[0].header.call, 9U);
}

// ---- requests

TEST_P(Sessions, SE1_ARequestGetsItsReplyOnceAndLateOnesFindNoRequest) {
  const CallId call = request(10).value();
  const auto sent = peer_->read();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].header.call, call.value);
  for (int i = 0; i < 2; ++i) receive(make_frame(header_of(FrameKind::response, call.value)));
  ASSERT_EQ(sink_->ends.size(), 1U);
  EXPECT_TRUE(sink_->ends[0]);
  EXPECT_EQ(session().requests().size(), 0U);
}

TEST_P(Sessions, SE3_ALateRequestTimesOutAndIsCancelledAtThePeer) {
  const CallId call = request(10, executor_.clock().now() + std::chrono::milliseconds(500)).value();
  EXPECT_EQ(peer_->read().size(), 1U);
  executor_.advance(std::chrono::milliseconds(499));
  EXPECT_TRUE(sink_->ends.empty());
  executor_.advance(std::chrono::milliseconds(2));
  ASSERT_EQ(sink_->ends.size(), 1U);
  EXPECT_EQ(sink_->ends[0].error().code(), Errc::timeout);
  const auto sent = peer_->read();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].header.kind, FrameKind::cancel);
  EXPECT_EQ(sent[0].header.call, call.value);
}

TEST_P(Sessions, SE10_AFullWindowIsOverloadedUntilSomethingEnds) {
  // A request of 1,000 bytes takes 2 * 1,000 + 4,096 for itself and its reply: a window of 10,000 has room for one.
  const CallId first = request(1000).value();
  const auto second = request(1000);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::overloaded);
  receive(make_frame(header_of(FrameKind::response, first.value)));
  // The window is used to the last byte: a request without a body takes 4,096 bytes, and the 2 * 904 + 4,096 of a
  // second one are exactly what is left.
  ASSERT_TRUE(request(0));
  const auto refused = request(905);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::overloaded);
  EXPECT_TRUE(request(904));
}

TEST_P(Sessions, AMessageAboveTheLimitIsNotSent) {
  const auto refused = request(100'001);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::limit_exceeded);
  EXPECT_TRUE(peer_->read_kinds().empty());
  EXPECT_TRUE(request(10));  // its room went back
}

TEST_P(Sessions, AMessageAboveWhatThePeerTakesIsNotSent) {
  side_ = nullptr;
  auto [ours, theirs] = make_loopback_pair(executor_);
  peer_ = std::make_unique<BytePeer>(std::move(theirs));
  net::Limits peer_takes;
  peer_takes.message = 2000;
  side_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, std::move(ours), options(), peer_takes);
  side_->session->start();
  EXPECT_EQ(request(2001).error().code(), Errc::limit_exceeded);
  EXPECT_TRUE(peer_->read_kinds().empty());
  EXPECT_TRUE(request(2000));
}

TEST_P(Sessions, ACancelledRequestEndsHereAndThere) {
  const CallId call = request(10).value();
  session().requests().cancel(call, Error(Errc::cancelled, "enough"));
  session().requests().cancel(call, Error(Errc::cancelled, "enough"));
  ASSERT_EQ(sink_->ends.size(), 1U);
  EXPECT_EQ(sink_->ends[0].error().code(), Errc::cancelled);
  EXPECT_EQ(peer_->read_kinds(), (std::vector{FrameKind::call, FrameKind::cancel}));
}

// ---- ending

TEST_P(Sessions, RR12_TheLossIsTypedAfterWhatHadArrivedWasRead) {
  request(10).value();
  peer_->write(make_frame(header_of(FrameKind::call, 5)));
  peer_->close();
  expect_end(Errc::peer_down);
  EXPECT_EQ(got().frames.size(), 1U);
  ASSERT_EQ(sink_->ends.size(), 1U);
  EXPECT_EQ(sink_->ends[0].error().code(), Errc::peer_down);
  EXPECT_EQ(request(10).error().code(), Errc::peer_down);
}

TEST_P(Sessions, ByeEndsBothSidesInOrder) {
  session().writer().close();
  executor_.run();
  EXPECT_EQ(peer_->read_kinds(), std::vector{FrameKind::bye});
  EXPECT_FALSE(session().ended());
  receive(make_frame(header_of(FrameKind::bye)));
  peer_->close_write();
  expect_end(Errc::peer_down);
  EXPECT_EQ(got().ends[0].text(), "worker1 has left");
}

TEST_P(Sessions, M_AByeFollowsWhatAFullChannelHeldBack) {
  // More bytes than the channel takes while the peer does not read.
  const wire::Bytes body(90'000, std::byte{5});
  std::size_t frames = 0;
  for (; frames < 30; ++frames) {
    wire::OutFrame frame;
    frame.header.kind = FrameKind::cancel;
    frame.body = body;
    ASSERT_TRUE(session().writer().send(frame));
  }
  session().writer().close(Error(Errc::remote_exception, "worker0", "the driver failed"));
  executor_.run();
  std::vector<FrameKind> kinds;
  for (std::vector<FrameKind> more = peer_->read_kinds(); !more.empty(); more = peer_->read_kinds()) {
    kinds.insert(kinds.end(), more.begin(), more.end());
    executor_.run();
  }
  ASSERT_EQ(kinds.size(), frames + 1) << "all that was accepted, and a bye";
  EXPECT_EQ(kinds.back(), FrameKind::bye);
}

/// A channel that has room again, but whose report about that has not arrived yet.
class UnreportedRoom final : public Channel {
 public:
  explicit UnreportedRoom(std::shared_ptr<Channel> inner) : inner_(std::move(inner)) {}
  void start(Ready ready) override { inner_->start(std::move(ready)); }
  void arm(bool read, bool) override { inner_->arm(read, false); }
  Result<std::size_t> read(const iovec* vectors, int count) override { return inner_->read(vectors, count); }
  Result<std::size_t> write(const iovec* vectors, int count) override { return inner_->write(vectors, count); }
  bool has_unread() const override { return inner_->has_unread(); }
  void close_write() override { inner_->close_write(); }
  void break_off() override { inner_->break_off(); }
  void close() override { inner_->close(); }
  int fd() const noexcept override { return inner_->fd(); }
  const char* kind() const noexcept override { return inner_->kind(); }
  bool may_fall_silent() const noexcept override { return inner_->may_fall_silent(); }

 private:
  const std::shared_ptr<Channel> inner_;
};

TEST_P(Sessions, TheByeOfThePeerIsAnsweredBehindWhatAFullChannelHeldBack) {
  side_ = nullptr;
  auto [ours, theirs] = make_loopback_pair(executor_, 200'000);
  peer_ = std::make_unique<BytePeer>(std::move(theirs));
  side_ = std::make_unique<SessionSide>(executor_, WorkerId{1}, std::make_shared<UnreportedRoom>(std::move(ours)),
                                        options());
  side_->session->start();
  // The channel has room for two of the three frames.
  const wire::Bytes body(90'000, std::byte{5});
  for (int i = 0; i < 3; ++i) {
    wire::OutFrame frame;
    frame.header.kind = FrameKind::cancel;
    frame.body = body;
    ASSERT_TRUE(session().writer().send(frame));
  }
  EXPECT_EQ(peer_->read_kinds(), (std::vector{FrameKind::cancel, FrameKind::cancel}));
  peer_->write(make_frame(header_of(FrameKind::bye)));
  peer_->close_write();
  expect_end(Errc::peer_down);
  EXPECT_EQ(peer_->read_kinds(), (std::vector{FrameKind::cancel, FrameKind::bye}));
}

TEST_P(Sessions, TheReasonOfAByeIsKept) {
  const wire::Bytes reason = wire::encode(Error(Errc::limit_exceeded, "worker1", "no memory")).value();
  receive(make_frame(header_of(FrameKind::bye), {}, reason));
  EXPECT_FALSE(session().ended());
  EXPECT_EQ(session().farewell().message(), "limit_exceeded: worker1: no memory");
  peer_->close_write();
  expect_end(Errc::peer_down);
}

TEST_P(Sessions, K11_WI21_RequestsFailWithTheWordsOfTheBye) {
  request(10).value();
  const wire::Bytes reason = wire::encode(Error(Errc::cancelled, "worker1", "the run was interrupted")).value();
  receive(make_frame(header_of(FrameKind::bye), {}, reason));
  const std::string words =
      "peer_down: worker1: worker1 has left (because: cancelled: worker1: the run was interrupted)";
  EXPECT_EQ(request(10).error().message(), words) << "before the session has ended";
  peer_->close_write();
  executor_.run();
  ASSERT_EQ(sink_->ends.size(), 1U);
  EXPECT_EQ(sink_->ends[0].error().message(), words) << "one that was under way";
}

TEST_P(Sessions, AByeThatCannotBeReadEndsTheSession) {
  wire::Bytes reason = wire::encode(Error(Errc::limit_exceeded, "worker1", "no memory")).value();
  reason.resize(reason.size() / 2);
  receive(make_frame(header_of(FrameKind::bye), {}, reason));
  expect_end(Errc::malformed_payload);
  EXPECT_EQ(session().farewell().code(), Errc::ok);
}

TEST_P(Sessions, NothingComesBehindABye) {
  wire::Bytes both = make_frame(header_of(FrameKind::bye));
  wire::append(both, make_frame(header_of(FrameKind::bye), {}, wire::encode(Error(Errc::timeout, "late")).value()));
  receive(both);
  expect_end(Errc::malformed_payload);
  EXPECT_EQ(session().farewell().code(), Errc::ok);
}

TEST_P(Sessions, ClosingWithAReasonTellsThePeer) {
  session().writer().close(Error(Errc::remote_exception, "worker0", "the driver failed"));
  session().writer().close(Error(Errc::timeout, "a second reason does not count"));
  executor_.run();
  const auto frames = peer_->read();
  ASSERT_EQ(frames.size(), 1U);
  Error reason;
  ASSERT_TRUE(wire::decode_into(frames[0].payload, reason));
  EXPECT_EQ(reason.message(), "remote_exception: worker0: the driver failed");
}

TEST_P(Sessions, TheByeOfThePeerIsAnsweredBehindWhatIsOpen) {
  request(10).value();
  receive(make_frame(header_of(FrameKind::bye)));
  EXPECT_EQ(peer_->read_kinds(), (std::vector{FrameKind::call, FrameKind::bye}));
  peer_->close();
  expect_end(Errc::peer_down);
  EXPECT_EQ(sink_->ends.size(), 1U);
}

TEST_P(Sessions, SE6_ASilentPeerIsLostAndATalkingOneIsNot) {
  for (int i = 0; i < 10; ++i) {
    executor_.advance(seconds(1));
    receive(make_frame(header_of(FrameKind::pong)));
  }
  EXPECT_FALSE(session().ended());
  EXPECT_GT(peer_->read_kinds().size(), 5U);  // pings
  for (int i = 0; i < 7; ++i) executor_.advance(seconds(1));
  expect_end(Errc::peer_down);
}

/// A channel that takes no bytes until it is opened, and all from then on. It reports nothing by itself.
class Valve final : public Channel {
 public:
  bool is_open = false;
  std::uint64_t taken = 0;
  bool reports_room = false;

  void report_room() {
    reports_room = false;
    ready_(false, true);
  }
  void start(Ready ready) override { ready_ = std::move(ready); }
  void arm(bool, bool write) override { reports_room = write; }
  Result<std::size_t> read(const iovec*, int) override { return std::size_t{0}; }
  Result<std::size_t> write(const iovec* vectors, int count) override {
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += is_open ? vectors[i].iov_len : 0;
    taken += bytes;
    return bytes;
  }
  bool has_unread() const override { return false; }
  void close_write() override {}
  void break_off() override {}
  void close() override {}
  int fd() const noexcept override { return -1; }
  const char* kind() const noexcept override { return "valve"; }

 private:
  Ready ready_;
};

TEST_P(Sessions, SE31_TheThreadThatKeepsTimeWritesOnlySoMuchToOnePeer) {
  constexpr std::size_t kBacklog = 16 << 20;
  SessionOptions takes = options();
  takes.limits.tensors = kBacklog;
  const auto valve = std::make_shared<Valve>();
  const SessionSide side(executor_, WorkerId{1}, valve, takes);
  side.session->start();
  const auto bytes = std::make_shared<wire::Bytes>(kBacklog);
  wire::OutFrame frame;
  frame.header.kind = FrameKind::response;
  frame.segments.push_back({bytes->data(), bytes->size(), bytes});
  ASSERT_TRUE(side.session->writer().send(frame));
  ASSERT_TRUE(valve->reports_room);
  valve->is_open = true;  // all runners compute, so none notices that the valve is open
  executor_.advance(seconds(1));
  EXPECT_GT(valve->taken, 0U);
  EXPECT_LT(valve->taken, 2U << 20);
  ASSERT_TRUE(valve->reports_room);
  valve->report_room();
  EXPECT_GT(valve->taken, kBacklog);
}

TEST_P(Sessions, AbortingEndsOnceWithTheFirstReason) {
  session().abort(Error(Errc::shut_down, "first"));
  session().abort(Error(Errc::timeout, "second"));
  expect_end(Errc::shut_down);
}

}  // namespace
}  // namespace caftan::transport::session_test
