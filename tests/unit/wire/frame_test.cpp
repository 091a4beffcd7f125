// Headers and sections of frames: what is refused.
#include "caftan/wire/frame.hpp"

#include <gtest/gtest.h>

#include <array>

namespace caftan::wire::frame_test {
namespace {

FrameHeader full_header() {
  FrameHeader header;
  header.sections_size = 1;
  header.body_size = 2;
  header.table_size = 3;
  header.kind = FrameKind::call;
  header.flags = kFlagError;
  header.call = 5;
  header.remaining_us = 6;
  header.trace = 7;
  header.bulk_size = 8;
  return header;
}

Result<FrameHeader> travel(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderSize> bytes{};
  encode_header(header, bytes.data());
  return decode_header(bytes.data());
}

TEST(Frame, WI2_EachFieldOfAHeaderComesBack) {
  const Result<FrameHeader> read = travel(full_header());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->sections_size, 1U);
  EXPECT_EQ(read->body_size, 2U);
  EXPECT_EQ(read->table_size, 3U);
  EXPECT_EQ(read->kind, FrameKind::call);
  EXPECT_EQ(read->flags, kFlagError);
  EXPECT_EQ(read->call, 5U);
  EXPECT_EQ(read->remaining_us, 6U);
  EXPECT_EQ(read->trace, 7U);
  EXPECT_EQ(read->bulk_size, 8U);
}

TEST(Frame, WI3_ReservedFlagsAreRefused) {
  for (unsigned bit = 0; bit < 8 * sizeof(FrameHeader::flags); ++bit) {
    FrameHeader header = full_header();
    header.flags = static_cast<decltype(header.flags)>(1U << bit);
    EXPECT_EQ(travel(header).has_value(), header.flags == kFlagError) << "bit " << bit;
  }
}

TEST(Frame, WI6_AChunkHasNothingButItsBytes) {
  FrameHeader chunk;
  chunk.kind = FrameKind::chunk;
  chunk.body_size = kMaxChunk;
  EXPECT_TRUE(travel(chunk));
  for (int field = 0; field < 4; ++field) {
    FrameHeader wrong = chunk;
    if (field == 0) wrong.sections_size = 8;
    if (field == 1) wrong.table_size = 8;
    if (field == 2) wrong.bulk_size = 8;
    if (field == 3) wrong.body_size = kMaxChunk + 1;
    const auto read = travel(wrong);
    ASSERT_FALSE(read) << "field " << field;
    EXPECT_EQ(read.error().code(), Errc::malformed_payload);
  }
}

TEST(Frame, TL5_TheBytesOfAnEndedFrame) {
  FrameHeader ended;
  ended.kind = FrameKind::ended;
  ended.call = 3;
  std::array<std::byte, kFrameHeaderSize> expected{};
  expected[12] = std::byte{6};
  expected[16] = std::byte{3};
  std::array<std::byte, kFrameHeaderSize> bytes{};
  encode_header(ended, bytes.data());
  EXPECT_EQ(bytes, expected);
  EXPECT_TRUE(travel(ended));
  for (int field = 0; field < 4; ++field) {
    FrameHeader wrong = ended;
    (field == 0 ? wrong.sections_size : field == 1 ? wrong.body_size : wrong.table_size) = 1;
    if (field == 3) wrong = ended, wrong.bulk_size = 1;
    EXPECT_EQ(travel(wrong).error().code(), Errc::malformed_payload) << "content in field " << field;
  }
}

TEST(Frame, WI3_ASectionThatIsCutOffIsRefused) {
  Bytes sections;
  append_section(sections, SectionType::rrefs, 0, Bytes(20));
  for (std::size_t size = 1; size < sections.size(); ++size) {
    SectionReader reader(ByteView(sections).first(size));
    const auto section = reader.next();
    ASSERT_FALSE(section) << size;
    EXPECT_EQ(section.error().code(), Errc::malformed_payload);
  }
}

}  // namespace
}  // namespace caftan::wire::frame_test
