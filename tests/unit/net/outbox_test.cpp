#include "caftan/net/internal/outbox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "caftan/wire/frame.hpp"
#include "caftan/wire/internal/out_frame.hpp"

namespace caftan::net::outbox_test {
namespace {

/// @param body  bytes of the body, at most 9000
wire::OutFrame make_frame(std::uint64_t call, std::size_t body, std::vector<wire::Segment> segments = {}) {
  static const wire::Bytes bytes(9000, std::byte{7});
  wire::OutFrame frame;
  frame.header.kind = wire::FrameKind::call;
  frame.header.call = call;
  frame.body = wire::ByteView(bytes).first(body);
  frame.segments = std::move(segments);
  return frame;
}

/// A segment whose bytes depend on their position in the message, kept alive only by its owner.
wire::Segment make_segment(std::uint64_t call, std::size_t at, std::size_t size) {
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  for (std::size_t i = 0; i < size; ++i) (*bytes)[i] = static_cast<std::byte>((at + i) * 31 + call);
  return {bytes->data(), size, bytes};
}

/// The reader at the other end: frames in order, and each message's tensor bytes.
struct Reader {
  struct Frame {
    wire::FrameHeader header;
    wire::Bytes body;
  };
  wire::Bytes pending;
  std::vector<Frame> frames;

  void read(wire::ByteView in) {
    wire::append(pending, in);
    while (pending.size() >= wire::kFrameHeaderSize) {
      const auto header = wire::decode_header(pending.data());
      ASSERT_TRUE(header);
      const std::size_t size = wire::kFrameHeaderSize + header->payload_size();
      if (pending.size() < size) return;
      frames.push_back({*header, wire::Bytes(pending.begin() + wire::kFrameHeaderSize, pending.begin() + size)});
      pending.erase(pending.begin(), pending.begin() + size);
    }
  }
};

/// Writes at most `limit` bytes of at most `entries` gathered pieces, as a socket would.
std::size_t write(Outbox& outbox, Reader& reader, std::size_t limit, std::size_t entries = 16) {
  std::vector<iovec> gathered(entries);
  gathered.resize(outbox.gather(gathered));
  std::size_t written = 0;
  for (const iovec& piece : gathered) {
    const std::size_t size = std::min(piece.iov_len, limit - written);
    reader.read({static_cast<const std::byte*>(piece.iov_base), size});
    written += size;
  }
  outbox.consume(written);
  return written;
}

constexpr std::size_t kAll = 1 << 30;

std::size_t gathered_bytes(Outbox& outbox, std::size_t& largest) {
  std::vector<iovec> pieces(64);
  pieces.resize(outbox.gather(pieces));
  std::size_t sum = 0;
  largest = 0;
  for (const iovec& piece : pieces) {
    sum += piece.iov_len;
    largest = std::max(largest, piece.iov_len);
  }
  return sum;
}

TEST(Outbox, SmallFramesShareBuffersOfAtMost64KiB) {
  Outbox outbox;
  for (std::uint64_t i = 1; i <= 100; ++i) outbox.append(make_frame(i, 3000));
  std::size_t largest = 0;
  EXPECT_EQ(gathered_bytes(outbox, largest), 100 * (3000 + wire::kFrameHeaderSize));
  EXPECT_LE(largest, 64U * 1024);
}

TEST(Outbox, WritesTheNextSmallFrameIntoTheMemoryOfTheLast) {
  Outbox outbox;
  Reader reader;
  std::array<iovec, 4> gathered;
  outbox.append(make_frame(1, 100));
  ASSERT_EQ(outbox.gather(gathered), 1U);
  const void* const first = gathered[0].iov_base;
  write(outbox, reader, kAll);
  outbox.append(make_frame(2, 90));
  ASSERT_EQ(outbox.gather(gathered), 1U);
  EXPECT_EQ(gathered[0].iov_base, first);
  write(outbox, reader, kAll);
  ASSERT_EQ(reader.frames.size(), 2U);
  EXPECT_EQ(reader.frames[1].header.call, 2U);
}

TEST(Outbox, SE16_NothingIsCommittedBehindAChunkThatIsNotOut) {
  Outbox outbox;
  outbox.append(make_frame(1, 10, {make_segment(1, 0, 4 * wire::kMaxChunk)}));
  std::size_t largest = 0;
  const std::size_t first = gathered_bytes(outbox, largest);
  outbox.append(make_frame(2, 10));
  EXPECT_EQ(gathered_bytes(outbox, largest), first);
  Reader reader;
  EXPECT_EQ(write(outbox, reader, kAll), first);
  // The control frame goes before the next chunk.
  write(outbox, reader, kAll);
  ASSERT_GE(reader.frames.size(), 4U);
  EXPECT_EQ(reader.frames[1].header.kind, wire::FrameKind::chunk);
  EXPECT_EQ(reader.frames[2].header.call, 2U);
  EXPECT_EQ(reader.frames[3].header.kind, wire::FrameKind::chunk);
}

TEST(Outbox, SE14_ControlFramesKeepTheirOrderAndShareWrites) {
  Outbox outbox;
  Reader reader;
  for (std::uint64_t i = 1; i <= 500; ++i) outbox.append(make_frame(i, i % 7 == 0 ? 6000 : i % 40));
  std::array<iovec, 1024> gathered;
  EXPECT_LT(outbox.gather(gathered), 160U) << "small frames go out together";
  while (!outbox.empty()) write(outbox, reader, 777);
  ASSERT_EQ(reader.frames.size(), 500U);
  for (std::uint64_t i = 0; i < 500; ++i) EXPECT_EQ(reader.frames[i].header.call, i + 1);
}

TEST(Outbox, SE15_BulkFollowsItsFrameInChunksInTheOrderOfMessages) {
  Outbox outbox;
  Reader reader;
  const std::size_t large = 3 * wire::kMaxChunk + 17;
  outbox.append(make_frame(1, 10, {make_segment(1, 0, large)}));
  outbox.append(make_frame(2, 10, {make_segment(2, 0, 5)}));
  while (!outbox.empty()) write(outbox, reader, kAll);
  ASSERT_EQ(reader.frames.size(), 2U + 4 + 1);
  EXPECT_EQ(reader.frames[0].header.call, 1U);
  EXPECT_EQ(reader.frames[1].header.call, 2U);
  for (int i = 2; i < 7; ++i) {
    EXPECT_EQ(reader.frames[i].header.kind, wire::FrameKind::chunk);
    EXPECT_EQ(reader.frames[i].header.call, i == 6 ? 2U : 1U);
  }
  EXPECT_EQ(reader.frames[5].body.size(), 17U);
}

TEST(Outbox, SE16_AMessageOf64MiBDelaysAControlFrameByOneChunkAtMost) {
  Outbox outbox;
  Reader reader;
  const std::size_t size = 64 << 20;
  const auto zeros = std::make_shared<std::vector<std::byte>>(size);
  outbox.append(make_frame(1, 0, {{zeros->data(), size, zeros}}));
  std::uint64_t call = 100;
  for (std::size_t already = 0; already < 40; ++already) {
    write(outbox, reader, already * 7000);
    outbox.append(make_frame(++call, 0));
    // A frame that is appended goes before the rest of the tensors: the reader gets at most the rest of one chunk
    // first.
    const std::size_t before = reader.frames.size();
    std::size_t ahead = 0;
    while (reader.frames.size() == before || reader.frames.back().header.call != call) {
      ahead += write(outbox, reader, 4096);
      constexpr std::size_t kSizes = wire::kSectionHeaderSize + 8;  // the section of the first frame
      ASSERT_LE(ahead, wire::kMaxChunk + 2 * wire::kFrameHeaderSize + kSizes + 4096);
    }
  }
  EXPECT_FALSE(outbox.empty());
}

TEST(Outbox, SE17_AStreamOfControlFramesDoesNotStarveBulk) {
  Outbox outbox;
  Reader reader;
  const std::size_t size = 4 * wire::kMaxChunk;
  outbox.append(make_frame(1, 0, {make_segment(1, 0, size)}));
  for (int i = 0; i < 4; ++i) {
    outbox.append(make_frame(2, 100));
    write(outbox, reader, kAll);
  }
  std::size_t bulk = 0;
  for (const auto& frame : reader.frames) bulk += frame.header.kind == wire::FrameKind::chunk ? frame.body.size() : 0;
  EXPECT_EQ(bulk, size);
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, SE15_SmallBulkSharesTheWriteOfItsFrameUnlessOtherBulkIsBeforeIt) {
  Outbox outbox;
  Reader reader;
  std::array<iovec, 8> gathered;
  for (std::uint64_t i = 1; i <= 3; ++i) outbox.append(make_frame(i, 3, {make_segment(i, 0, 7)}));
  EXPECT_EQ(outbox.gather(gathered), 1U);
  outbox.append(make_frame(4, 3, {make_segment(4, 0, 7000)}));
  outbox.append(make_frame(5, 3, {make_segment(5, 0, 7)}));
  while (!outbox.empty()) write(outbox, reader, kAll);
  std::vector<std::uint64_t> chunks;
  for (const auto& frame : reader.frames) {
    if (frame.header.kind == wire::FrameKind::chunk) chunks.push_back(frame.header.call);
  }
  EXPECT_EQ(chunks, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
}

TEST(Outbox, SE18_ASegmentIsReleasedWhenItsLastByteIsOut) {
  Outbox outbox;
  Reader reader;
  wire::Segment segment = make_segment(1, 0, wire::kMaxChunk + 1000);
  const std::weak_ptr<const void> alive = segment.owner;
  const std::byte* data = segment.data;
  outbox.append(make_frame(1, 0, {std::move(segment), {}, make_segment(1, 0, 2 * wire::kMaxChunk)}));
  std::array<iovec, 8> gathered;
  ASSERT_EQ(outbox.gather(gathered), 3U);
  EXPECT_EQ(gathered[2].iov_base, data) << "gathered from where it lies";
  write(outbox, reader, kAll);
  EXPECT_FALSE(alive.expired());
  write(outbox, reader, wire::kFrameHeaderSize + 999);
  EXPECT_FALSE(alive.expired());
  write(outbox, reader, 1);
  EXPECT_TRUE(alive.expired());
  EXPECT_FALSE(outbox.empty());
}

TEST(Outbox, SE18_ASegmentWithoutOwnerIsCopiedWhereItHasToWait) {
  Outbox outbox;
  Reader reader;
  outbox.append(make_frame(1, 0, {make_segment(1, 0, 7000)}));
  {
    const wire::Segment lent = make_segment(2, 0, 7);
    outbox.append(make_frame(2, 0, {{lent.data, lent.size, nullptr}}));
  }
  while (!outbox.empty()) write(outbox, reader, kAll);
  ASSERT_EQ(reader.frames.size(), 4U);
  EXPECT_EQ(reader.frames[3].header.call, 2U);
  const wire::Segment expected = make_segment(2, 0, 7);
  EXPECT_TRUE(std::equal(reader.frames[3].body.begin(), reader.frames[3].body.end(), expected.data));
}

TEST(Outbox, SE18_QueuedSegmentsAreReleasedWithTheOutbox) {
  std::weak_ptr<const void> alive;
  {
    Outbox outbox;
    wire::Segment segment = make_segment(1, 0, 10'000);
    alive = segment.owner;
    outbox.append(make_frame(1, 0, {std::move(segment)}));
  }
  EXPECT_TRUE(alive.expired());
}

TEST(Outbox, SE19_WhatWasGatheredIsGatheredAgainUntilItIsConsumed) {
  Outbox outbox;
  outbox.append(make_frame(1, 3, {make_segment(1, 0, 7000)}));
  std::array<iovec, 8> first, second;
  ASSERT_EQ(outbox.gather(first), 3U);
  outbox.append(make_frame(2, 3));
  const std::size_t count = outbox.gather(second);
  ASSERT_GE(count, 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(first[i].iov_base, second[i].iov_base);
    EXPECT_EQ(first[i].iov_len, second[i].iov_len);
  }
}

TEST(Outbox, SE14_NothingToWriteIsNoEntry) {
  Outbox outbox;
  std::array<iovec, 4> gathered;
  EXPECT_EQ(outbox.gather(gathered), 0U);
  EXPECT_TRUE(outbox.empty());
}

// Random messages, writes and gather sizes: the reader sees every frame and every byte, in order.
class OutboxModel : public ::testing::TestWithParam<int> {};

TEST_P(OutboxModel, SE14_SE15_SE19_EveryByteArrivesInOrder) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  Outbox outbox;
  Reader reader;
  std::vector<std::uint64_t> sizes;  // of bulk, per call
  while (sizes.size() < 60 || !outbox.empty()) {
    if (sizes.size() < 60 && random() % 2 == 0) {
      const std::uint64_t call = sizes.size() + 1;
      std::vector<wire::Segment> bulk;
      std::uint64_t size = 0;
      for (auto count = random() % 6; count > 0; --count) {
        bulk.push_back(make_segment(call, size, random() % 12 == 0 ? random() % 600'000 : random() % 40));
        size += bulk.back().size;
      }
      sizes.push_back(size);
      outbox.append(make_frame(call, random() % 9000, std::move(bulk)));
    }
    write(outbox, reader, random() % 3 == 0 ? random() % 50 : random() % 200'000, 1 + random() % 20);
  }
  std::uint64_t last_frame = 0;
  std::vector<std::uint64_t> received(sizes.size());
  std::uint64_t reading = 1;
  for (const auto& frame : reader.frames) {
    if (frame.header.kind != wire::FrameKind::chunk) {
      ASSERT_EQ(frame.header.call, ++last_frame);
      continue;
    }
    ASSERT_LE(frame.header.call, last_frame) << "a chunk came before its message";
    while (received[reading - 1] == sizes[reading - 1]) ++reading;
    ASSERT_EQ(frame.header.call, reading) << "chunks belong to the oldest message that is not complete";
    std::uint64_t& at = received[reading - 1];
    for (const std::byte byte : frame.body) ASSERT_EQ(byte, static_cast<std::byte>(at++ * 31 + reading));
  }
  EXPECT_EQ(received, sizes);
  EXPECT_TRUE(reader.pending.empty());
  EXPECT_EQ(outbox.queued_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, OutboxModel, ::testing::Range(1, 7));

TEST(Outbox, AFrameBehindTheRestOfTheLastChunkIsUnfinished) {
  Outbox outbox;
  Reader reader;
  outbox.append(make_frame(1, 0, {make_segment(1, 0, 9000)}));
  write(outbox, reader, 5000);
  outbox.append(make_frame(2, 0));
  write(outbox, reader, kAll);  // the rest of the chunk, behind which nothing was added
  EXPECT_TRUE(outbox.unfinished());
  write(outbox, reader, kAll);
  EXPECT_FALSE(outbox.unfinished());
  EXPECT_EQ(reader.frames.back().header.call, 2U);
}

TEST(Outbox, BU2_LentSegmentsDoNotFollowAndAreKeptUntilTheyAreTaken) {
  Outbox outbox;
  Reader reader;
  std::vector<std::weak_ptr<const void>> owners;
  const auto lend = [&](std::uint64_t call) {
    std::vector<wire::Segment> segments{make_segment(call, 0, wire::kLentFrom), make_segment(call, 0, 5000),
                                        make_segment(call, 0, wire::kLentFrom + 1)};
    for (const wire::Segment& segment : segments) owners.push_back(segment.owner);
    wire::OutFrame frame = make_frame(call, 10, std::move(segments));
    frame.lends = true;
    outbox.append(std::move(frame));
  };
  lend(1);
  lend(2);
  while (!outbox.empty()) write(outbox, reader, 777);
  ASSERT_EQ(reader.frames.size(), 4U);
  EXPECT_EQ(reader.frames[2].header.kind, wire::FrameKind::chunk);
  EXPECT_EQ(reader.frames[2].body.size(), 5000U);
  const auto alive = [&owners] {
    std::string text;
    for (const auto& owner : owners) text += owner.expired() ? '-' : 'x';
    return text;
  };
  EXPECT_EQ(alive(), "x-xx-x") << "chunks are let go of when they are written";
  EXPECT_TRUE(outbox.lends());
  EXPECT_EQ(outbox.taken().size(), 2U);
  EXPECT_EQ(alive(), "---x-x");
  EXPECT_EQ(outbox.take_back().size(), 2U);
  EXPECT_EQ(alive(), "------");
  EXPECT_FALSE(outbox.lends());
}

TEST(Outbox, BU6_LentBytesAreABacklogButForTheOldestMessage) {
  Outbox outbox;
  Reader reader;
  for (std::uint64_t call = 1; call <= 3; ++call) {
    wire::OutFrame frame = make_frame(call, 10, {make_segment(call, 0, wire::kLentFrom)});
    frame.lends = true;
    outbox.append(std::move(frame));
  }
  while (!outbox.empty()) write(outbox, reader, kAll);
  EXPECT_EQ(outbox.backlog(), 2 * wire::kLentFrom);
  (void)outbox.taken();
  EXPECT_EQ(outbox.backlog(), wire::kLentFrom);
  (void)outbox.taken();
  EXPECT_EQ(outbox.backlog(), 0U);
  EXPECT_TRUE(outbox.lends());
}

}  // namespace
}  // namespace caftan::net::outbox_test
