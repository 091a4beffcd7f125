// FrameReader: however the bytes of a stream are divided, the same frames come out, and bytes that break the rules are
// refused.
#include "caftan/wire/internal/frame_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "made_frames.hpp"

namespace caftan::wire::frame_reader_test {
namespace {

MessageLimits limits() {
  MessageLimits limits;
  limits.message = 100'000;
  limits.tensors = 100'000;
  limits.segments = 4;
  return limits;
}

/// A FrameReader with the frames and errors that it gave.
class Reading {
 public:
  /// Feeds `bytes` to the reader until their end or until the reader refuses a frame.
  void feed(ByteView bytes) {
    while (!bytes.empty() && !refused) {
      bytes = bytes.subspan(reader_.put(bytes));
      read();
    }
  }
  std::uint64_t begun() const { return reader_.frames(); }
  /// Reads `most` bytes at most of what is lent next, as a session does: the bytes are the last digit of their address.
  /// Returns their first address, 0 if none is lent.
  std::uint64_t read_place(std::size_t most = SIZE_MAX) {
    const auto place = reader_.place();
    if (!place) {
      read();
      return 0;
    }
    const std::span<std::byte> to = place->to.first(std::min(most, place->to.size()));
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::byte>('0' + (place->from + i) % 10);
    reader_.took_place(to.size());
    read();
    return place->from;
  }
  bool has_place() const { return reader_.has_place(); }

  std::vector<InFrame> frames;
  std::vector<std::string> manifests;
  std::optional<Error> refused;

 private:
  void read() {
    for (;;) {
      const auto found = reader_.next();
      if (!found) {
        refused = found.error();
        return;
      }
      if (*found == FrameReader::Item::nothing) return;
      if (*found == FrameReader::Item::frame) {
        frames.push_back(reader_.take());
        continue;
      }
      const ByteView manifest = reader_.manifest();
      manifests.emplace_back(reinterpret_cast<const char*>(manifest.data()), manifest.size());
      reader_.set_manifest(std::make_shared<std::string>(manifests.back()));
    }
  }

  BlockPool pool_;
  FrameReader reader_{pool_, limits()};
};

std::string text_of(const InFrame& frame) {
  std::string text = std::to_string(frame.header.call) + " " + std::string(name_of(frame.header.kind));
  const auto add = [&text](const char* what, ByteView bytes) {
    text += std::string(" ") + what + "=";
    for (const std::byte byte : bytes) text += static_cast<char>(byte);
  };
  add("body", frame.body);
  add("table", frame.table);
  if (frame.sections.target) add("target", *frame.sections.target);
  if (frame.sections.depth) add("depth", *frame.sections.depth);
  if (frame.manifest) text += " manifest=" + *std::static_pointer_cast<std::string>(frame.manifest);
  for (const Block& segment : frame.segments) add("segment", segment.view());
  return text;
}

std::vector<std::string> texts_of(const Reading& reading) {
  std::vector<std::string> texts;
  for (const InFrame& frame : reading.frames) texts.push_back(text_of(frame));
  return texts;
}

Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// Returns a stream with one of everything.
Bytes stream_of_all() {
  Bytes sections = bulk_sections({3, 0, 2});
  append_section(sections, SectionType::rrefs, kSectionCritical, bytes_of("mmm"));
  append_section(sections, SectionType::target, kSectionCritical, bytes_of("object"));
  append_section(sections, static_cast<SectionType>(77), 0, bytes_of("unknown"));
  FrameHeader header = header_of(FrameKind::method, 1);
  header.bulk_size = 5;
  Bytes stream = make_frame(header, sections, bytes_of("arguments"), bytes_of("table"));
  append(stream, bulk_call(2, {0, 0}));
  append(stream, bulk_call(3, {1}));
  append(stream, chunk(2, std::byte{'a'}));
  Bytes depth;
  append_section(depth, SectionType::depth, 0, bytes_of("d"));
  append(stream, make_frame(header_of(FrameKind::call, 4), depth, bytes_of("small")));
  append(stream, chunk(0, std::byte{'-'}));
  append(stream, chunk(3, std::byte{'b'}));
  append(stream, chunk(1, std::byte{'c'}));
  append(stream, make_frame(header_of(FrameKind::bye)));
  return stream;
}

const std::vector<std::string>& frames_of_all() {
  static const std::vector<std::string> frames{
      "4 call body=small table= depth=d",
      "1 method body=arguments table=table target=object manifest=mmm segment=aab segment= segment=bb",
      "2 call body= table= segment= segment=",
      "3 call body= table= segment=c",
      "0 bye body= table=",
  };
  return frames;
}

TEST(FrameReader, WI5_TheSameFramesComeOutHoweverTheBytesAreCut) {
  const Bytes stream = stream_of_all();
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    Reading reading;
    reading.feed(ByteView(stream).first(cut));
    reading.feed(ByteView(stream).subspan(cut));
    ASSERT_FALSE(reading.refused) << cut << ": " << reading.refused->message();
    ASSERT_EQ(texts_of(reading), frames_of_all()) << cut;
    ASSERT_EQ(reading.begun(), 9U);
  }
  for (std::size_t piece = 1; piece < 60; ++piece) {
    Reading reading;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reading.feed(ByteView(stream).subspan(at, std::min(piece, stream.size() - at)));
    }
    ASSERT_EQ(texts_of(reading), frames_of_all()) << piece;
  }
}

TEST(FrameReader, WI5_ManyFramesArriveInOrder) {
  Bytes stream;
  for (std::uint64_t call = 1; call <= 40; ++call) {
    append(stream, make_frame(header_of(FrameKind::call, call), {}, Bytes(call * 997, std::byte{1})));
  }
  Reading reading;
  reading.feed(stream);  // many times the buffer
  ASSERT_EQ(reading.frames.size(), 40U);
  for (std::uint64_t call = 1; call <= 40; ++call) {
    EXPECT_EQ(reading.frames[call - 1].header.call, call);
    EXPECT_EQ(reading.frames[call - 1].body.size(), call * 997);
  }
}

TEST(FrameReader, WI4_RR3_TheManifestIsThereBeforeTheTensors) {
  Bytes sections = bulk_sections({8});
  append_section(sections, SectionType::rrefs, kSectionCritical, bytes_of("mmm"));
  FrameHeader header = header_of(FrameKind::call, 1);
  header.bulk_size = 8;
  Reading reading;
  reading.feed(make_frame(header, sections));
  EXPECT_EQ(reading.manifests, std::vector<std::string>{"mmm"});
  EXPECT_TRUE(reading.frames.empty());
  reading.feed(chunk(8, std::byte{2}));
  ASSERT_EQ(reading.frames.size(), 1U);
  EXPECT_EQ(*std::static_pointer_cast<std::string>(reading.frames[0].manifest), "mmm");
}

TEST(FrameReader, WI5_TensorBytesFollowInChunksAndDoNotDelayOtherFrames) {
  Reading reading;
  reading.feed(bulk_call(1, {10, 0, 5}));
  reading.feed(bulk_call(2, {3}));
  reading.feed(chunk(7, std::byte{7}));
  reading.feed(make_frame(header_of(FrameKind::call, 3)));
  ASSERT_EQ(reading.frames.size(), 1U);
  EXPECT_EQ(reading.frames[0].header.call, 3U);
  reading.feed(chunk(8, std::byte{8}));
  reading.feed(chunk(3, std::byte{9}));
  ASSERT_EQ(reading.frames.size(), 3U);
  const InFrame& first = reading.frames[1];
  ASSERT_EQ(first.segments.size(), 3U);
  EXPECT_EQ(first.segments[0].data()[6], std::byte{7});
  EXPECT_EQ(first.segments[0].data()[7], std::byte{8});
  EXPECT_EQ(first.segments[1].size(), 0U);
  EXPECT_EQ(first.segments[2].data()[4], std::byte{8});
  EXPECT_EQ(reading.frames[2].header.call, 2U);
}

TEST(FrameReader, WI3_TheFirstOfTwoEqualSectionsCounts) {
  Bytes sections;
  append_section(sections, SectionType::target, kSectionCritical, Bytes(1, std::byte{1}));
  append_section(sections, SectionType::target, 0, Bytes(2, std::byte{2}));
  Reading reading;
  reading.feed(make_frame(header_of(FrameKind::call, 1), sections));
  reading.feed(make_frame(header_of(FrameKind::call, 2)));
  ASSERT_EQ(reading.frames.size(), 2U);
  ASSERT_TRUE(reading.frames[0].sections.target);
  ASSERT_EQ(reading.frames[0].sections.target->size(), 1U);
  EXPECT_EQ(reading.frames[0].sections.target->front(), std::byte{1});
  EXPECT_FALSE(reading.frames[0].sections.chain);
  EXPECT_FALSE(reading.frames[1].sections.target) << "of the frame before it";
}

TEST(FrameReader, ADirectReadEndsWithItsPayload) {
  BlockPool pool;
  FrameReader reader(pool, limits());
  const Bytes frame = make_frame(header_of(FrameKind::call, 1), {}, Bytes(1000, std::byte{5}));
  ASSERT_EQ(reader.put(ByteView(frame).first(kFrameHeaderSize)), kFrameHeaderSize);
  ASSERT_EQ(reader.next().value(), FrameReader::Item::nothing);
  EXPECT_TRUE(reader.has_direct_room());
  EXPECT_EQ(reader.room().direct.size(), 1000U);
  ASSERT_EQ(reader.put(ByteView(frame).subspan(kFrameHeaderSize, 999)), 999U);
  ASSERT_EQ(reader.next().value(), FrameReader::Item::nothing);
  EXPECT_EQ(reader.room().direct.size(), 1U);
  Bytes rest(1, std::byte{5});
  append(rest, frame);
  ASSERT_EQ(reader.put(rest), rest.size()) << "what is behind the payload goes to the buffer";
  ASSERT_EQ(reader.next().value(), FrameReader::Item::frame);
  EXPECT_EQ(reader.take().body.size(), 1000U);
  ASSERT_EQ(reader.next().value(), FrameReader::Item::frame);
  EXPECT_EQ(reader.take().body.size(), 1000U);
  ASSERT_EQ(reader.next().value(), FrameReader::Item::nothing);
  EXPECT_FALSE(reader.has_direct_room());
}

struct Refusal {
  const char* what;
  Bytes bytes;
  Errc code;
  const char* text;
};

std::vector<Refusal> refusals() {
  const FrameHeader call = header_of(FrameKind::call, 1);
  FrameHeader wrong_kind = call;
  wrong_kind.kind = static_cast<FrameKind>(200);
  FrameHeader wrong_flags = call;
  wrong_flags.flags = 2;
  FrameHeader huge_bulk = call;
  huge_bulk.bulk_size = 1'000'000;
  FrameHeader unsaid_bulk = call;
  unsaid_bulk.bulk_size = 8;
  Bytes huge = make_frame(call, {}, Bytes(100'001));
  huge.resize(kFrameHeaderSize);
  Bytes critical;
  append_section(critical, static_cast<SectionType>(77), kSectionCritical, {});
  Bytes cut_off;
  append_section(cut_off, SectionType::bulk, kSectionCritical, Bytes(9));
  FrameHeader larger = call;
  larger.bulk_size = 7;
  Bytes late = make_frame(header_of(FrameKind::bye));
  append(late, make_frame(header_of(FrameKind::ping)));
  Bytes too_long = bulk_call(1, {8});
  append(too_long, chunk(9, std::byte{0}));
  Bytes wide_chunk = chunk(1, std::byte{0});
  FrameHeader wide = header_of(FrameKind::chunk);
  wide.body_size = kMaxChunk + 1;
  encode_header(wide, wide_chunk.data());
  return {
      {"a kind that nobody knows", make_frame(wrong_kind), Errc::malformed_payload, "unknown frame kind"},
      {"a reserved flag", make_frame(wrong_flags), Errc::malformed_payload, "reserved frame flags"},
      {"a chunk that is too large", wide_chunk, Errc::malformed_payload, "a chunk frame of impossible size"},
      {"a payload beyond the limit, before it comes", huge, Errc::limit_exceeded, "limits.message"},
      {"bulk beyond the limit", make_frame(huge_bulk), Errc::limit_exceeded, "limits.tensors"},
      {"more segments than the limit", bulk_call(1, {1, 1, 1, 1, 1}), Errc::limit_exceeded, "Limits::segments"},
      {"a section header that is cut off", make_frame(call, Bytes(3)), Errc::malformed_payload, "is cut off"},
      {"a critical section", make_frame(call, critical), Errc::protocol_mismatch, "a critical section of unknown type"},
      {"sizes that are cut off", make_frame(call, cut_off), Errc::malformed_payload, "segment sizes is cut off"},
      {"bulk without sizes", make_frame(unsaid_bulk), Errc::malformed_payload, "segments are smaller"},
      {"sizes below the bulk", make_frame(unsaid_bulk, bulk_sections({7})), Errc::malformed_payload,
       "segments are smaller"},
      {"sizes above the bulk", make_frame(larger, bulk_sections({8})), Errc::malformed_payload, "segments are larger"},
      {"a chunk of nothing", chunk(4, std::byte{0}), Errc::malformed_payload, "belongs to no message"},
      {"a chunk that is too long", too_long, Errc::malformed_payload, "longer than its message"},
      {"a frame after bye", late, Errc::malformed_payload, "a frame after bye"},
  };
}

TEST(FrameReader, WI2_WI3_WI6_WI7_WI12_WhatBreaksTheRulesIsRefused) {
  for (const Refusal& refusal : refusals()) {
    SCOPED_TRACE(refusal.what);
    Reading whole;
    whole.feed(refusal.bytes);
    Reading pieces;
    for (std::size_t at = 0; at < refusal.bytes.size(); ++at) pieces.feed(ByteView(refusal.bytes).subspan(at, 1));
    for (const Reading* reading : {&whole, &pieces}) {
      ASSERT_TRUE(reading->refused);
      EXPECT_EQ(reading->refused->code(), refusal.code);
      EXPECT_NE(reading->refused->text().find(refusal.text), std::string::npos) << reading->refused->text();
    }
  }
}

TEST(FrameReader, BU3_LentSegmentsAndChunksFillAMessageInAnyOrder) {
  Reading reading;
  reading.feed(lending_call(1, {4, 2, 0, 3}, {20, 0, 0, 31}));
  EXPECT_TRUE(reading.has_place());
  EXPECT_EQ(reading.read_place(3), 20U);
  reading.feed(chunk(2, std::byte{'a'}));
  EXPECT_EQ(reading.read_place(), 23U);
  EXPECT_TRUE(reading.frames.empty());
  EXPECT_EQ(reading.read_place(), 31U);
  EXPECT_EQ(texts_of(reading),
            std::vector<std::string>{"1 call body= table= segment=0123 segment=aa segment= segment=123"});
  EXPECT_TRUE(reading.frames[0].lent);
  EXPECT_FALSE(reading.has_place());
}

TEST(FrameReader, BU3_AMessageWaitsForTheLentSegmentsOfEarlierOnesAndOtherFramesPassThem) {
  Reading reading;
  reading.feed(lending_call(1, {4}, {20}));
  reading.feed(bulk_call(2, {3}));
  reading.feed(lending_call(3, {2, 1}, {50, 0}));
  reading.feed(make_frame(header_of(FrameKind::call, 4)));
  reading.feed(chunk(4, std::byte{'b'}));  // too long for the second message: there is none behind it in a chunk
  EXPECT_EQ(reading.refused->code(), Errc::malformed_payload);

  Reading again;
  again.feed(lending_call(1, {4}, {20}));
  again.feed(bulk_call(2, {3}));
  again.feed(lending_call(3, {2, 1}, {50, 0}));
  again.feed(make_frame(header_of(FrameKind::call, 4)));
  again.feed(chunk(3, std::byte{'b'}));
  again.feed(chunk(1, std::byte{'c'}));
  EXPECT_EQ(texts_of(again), std::vector<std::string>{"4 call body= table="});
  EXPECT_EQ(again.read_place(), 20U);
  EXPECT_EQ(again.frames.size(), 3U) << "the first message, and the second, which waited for it";
  EXPECT_EQ(again.read_place(), 50U);
  EXPECT_EQ(texts_of(again), (std::vector<std::string>{
                                 "4 call body= table=",
                                 "1 call body= table= segment=0123",
                                 "2 call body= table= segment=bbb",
                                 "3 call body= table= segment=01 segment=c",
                             }));
  EXPECT_FALSE(again.refused);
}

TEST(FrameReader, BU9_PlacesThatDoNotFitTheSegmentsAreRefused) {
  for (const Bytes& bad : {lending_call(1, {4}, {20, 30}), lending_call(1, {4, 4}, {20}), lending_call(1, {}, {20})}) {
    Reading reading;
    reading.feed(bad);
    ASSERT_TRUE(reading.refused);
    EXPECT_EQ(reading.refused->code(), Errc::malformed_payload);
  }
  Reading chunked;
  chunked.feed(lending_call(1, {4}, {20}));
  chunked.feed(chunk(1, std::byte{'a'}));
  ASSERT_TRUE(chunked.refused);
  EXPECT_EQ(chunked.refused->text(), "a chunk that belongs to no message");
}

TEST(FrameReader, BU5_LentBytesCountAsThoseOfChunks) {
  Reading bytes;
  bytes.feed(lending_call(1, {99'000, 2'000}, {20, 0}));
  EXPECT_EQ(bytes.refused->code(), Errc::limit_exceeded);
  Reading segments;
  segments.feed(lending_call(1, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}));
  EXPECT_EQ(segments.refused->code(), Errc::limit_exceeded);
}

TEST(FrameReader, WI22_WithoutMemoryForALentSegmentTheMessageFailsAlone) {
  MessageLimits large;
  large.tensors = std::uint64_t{1} << 62;
  BlockPool pool;
  FrameReader reader(pool, large);
  const auto feed = [&reader](const Bytes& bytes) {
    EXPECT_EQ(reader.put(bytes), bytes.size());
    return reader.next().value();
  };
  EXPECT_EQ(feed(lending_call(1, {std::uint64_t{1} << 60, 3}, {20, 0})), FrameReader::Item::nothing);
  EXPECT_TRUE(reader.has_place());
  EXPECT_FALSE(reader.place());
  EXPECT_FALSE(reader.has_place());
  EXPECT_EQ(feed(chunk(3, std::byte{'a'})), FrameReader::Item::frame);
  const InFrame frame = reader.take();
  EXPECT_EQ(frame.received.error().code(), Errc::limit_exceeded);
  EXPECT_TRUE(frame.lent) << "the lender has to hear that it is over";
}

TEST(FrameReader, BU9_OnlyTakenMayComeBehindABye) {
  Reading reading;
  reading.feed(make_frame(header_of(FrameKind::bye)));
  reading.feed(make_frame(header_of(FrameKind::taken)));
  EXPECT_FALSE(reading.refused);
  reading.feed(make_frame(header_of(FrameKind::ping)));
  EXPECT_TRUE(reading.refused);
  Reading content;
  content.feed(make_frame(header_of(FrameKind::taken), {}, bytes_of("x")));
  EXPECT_EQ(content.refused->code(), Errc::malformed_payload);
}

}  // namespace
}  // namespace caftan::wire::frame_reader_test
