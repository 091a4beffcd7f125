// Frames: the bytes of the page, what comes back, and what is refused.
#include "caftan/sim/internal/frame.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace caftan::sim::frame_test {
namespace {

using testing::HasSubstr;

FrameHead some_head() {
  return {.simulation = 0x0102,
          .sender = 3,
          .kind = FrameKind::window,
          .round = 5,
          .part = 1,
          .is_last = true,
          .next = Time{70},
          .finish = kNever,
          .sent = {Time{9}}};
}

Event some_event() {
  Event event{.time = 0x11, .source = 2, .to = 4};
  event.sequence = (std::uint64_t{1} << 40) - 1;
  event.priority = 128;
  event.type = 6;
  return event;
}

wire::Bytes some_frame() {
  FrameWriter writer;
  const std::byte payload[] = {std::byte{0xaa}, std::byte{0xbb}};
  EXPECT_FALSE(writer.add(some_event(), payload));
  return writer.finish(some_head());
}

TEST(SimFrame, HasTheBytesOfThePage) {
  std::string hex;
  for (const std::byte byte : some_frame()) {
    for (const int shift : {4, 0}) hex += "0123456789abcdef"[std::to_integer<int>(byte) >> shift & 15];
  }
  EXPECT_EQ(hex,
            "0201000000000000"
            "03000000"
            "00"
            "0500000000000000"
            "01000000"
            "01"  // simulation to is_last
            "4600000000000000"
            "ffffffffffffff7f"
            "ffffffffffffffff"  // next, finish, reached
            "01"
            "0900000000000000"  // sent
            "01"
            "1100000000000000"
            "80"
            "02000000"
            "04000000"
            "ffffffffff000000"
            "06"
            "02"
            "aabb");
}

TEST(SimFrame, ComesBackAsItWasWritten) {
  const wire::Bytes bytes = some_frame();
  const Frame frame = decode_frame(bytes).value();
  EXPECT_EQ(frame.head.simulation, 0x0102);
  EXPECT_EQ(frame.head.sender, 3);
  EXPECT_EQ(frame.head.round, 5);
  EXPECT_EQ(frame.head.part, 1);
  EXPECT_TRUE(frame.head.is_last);
  EXPECT_EQ(frame.head.next, Time{70});
  EXPECT_EQ(frame.head.finish, kNever);
  EXPECT_EQ(frame.head.reached, FrameHead::kNotReached);
  EXPECT_EQ(frame.head.sent, std::vector<Time>{Time{9}});
  ASSERT_EQ(frame.events.size(), 1);
  const Event& event = frame.events[0].event;
  const Event wanted = some_event();
  EXPECT_FALSE(comes_before(event, wanted) || comes_before(wanted, event));
  EXPECT_EQ(event.to, 4);
  EXPECT_EQ(event.type, 6);
  EXPECT_EQ(frame.events[0].payload.size(), 2);
}

TEST(SimFrame, APartIsFullAfterAMebibyte) {
  FrameWriter writer;
  const wire::Bytes payload(1000);
  int events = 1;
  while (!writer.add(some_event(), payload)) ++events;
  EXPECT_EQ(events, 1021);  // of 1,028 bytes each
  const wire::Bytes bytes = writer.finish(some_head());
  EXPECT_EQ(decode_frame(bytes).value().events.size(), 1021);
  EXPECT_TRUE(writer.empty());
}

TEST(SimFrame, SM5_AFrameThatIsCutOffIsRefused) {
  const wire::Bytes bytes = some_frame();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto frame = decode_frame(wire::ByteView(bytes).first(size));
    ASSERT_FALSE(frame) << size;
    EXPECT_EQ(frame.error().code(), Errc::malformed_payload);
  }
  wire::Bytes longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode_frame(longer).error().code(), Errc::malformed_payload);
}

TEST(SimFrame, SM5_TimesAndSequencesThatNoEventHasAreRefused) {
  const auto refused = [](std::size_t at, std::byte value) {
    wire::Bytes bytes = some_frame();
    bytes[at] = value;
    return decode_frame(bytes).error().text();
  };
  constexpr std::size_t kTime = 60;                                            // of the event
  EXPECT_THAT(refused(12, std::byte{2}), HasSubstr("enum"));                   // kind
  EXPECT_THAT(refused(33, std::byte{0x80}), HasSubstr("a time is negative"));  // next
  EXPECT_THAT(refused(kTime + 7, std::byte{0x80}), HasSubstr("a time that no event has"));
  EXPECT_THAT(refused(kTime + 22, std::byte{1}), HasSubstr("more than 40 bits"));
  EXPECT_THAT(refused(kTime - 1, std::byte{0x7f}), HasSubstr("exceeds what is left"));
}

TEST(SimFrame, SM5_AnyChangedByteIsAFrameOrATypedError) {
  std::mt19937 random(1);
  const wire::Bytes bytes = some_frame();
  for (int i = 0; i < 20'000; ++i) {
    wire::Bytes changed = bytes;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<std::byte>(random());
    const auto frame = decode_frame(changed);
    ASSERT_TRUE(frame || frame.error().code() == Errc::malformed_payload);
  }
}

}  // namespace
}  // namespace caftan::sim::frame_test
