#include "caftan/net/internal/outbox.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "caftan/wire/frame.hpp"

namespace caftan::net {

namespace {

/// Small frames share one buffer, so that a burst of calls is one entry of the gather list.
constexpr std::size_t kBufferSize = 64 * 1024;
constexpr std::size_t kSmallFrame = wire::kSmallBulk + 1024;  // bytes: a frame with a small bulk behind it

void append_chunk_header(wire::Bytes& bytes, CallId call, std::size_t size) {
  wire::FrameHeader header;
  header.kind = wire::FrameKind::chunk;
  header.body_size = static_cast<std::uint32_t>(size);
  header.call = call.value;
  wire::encode_header(header, wire::extend(bytes, wire::kFrameHeaderSize));
}

wire::Segment copy_of(const wire::Segment& segment) {
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(segment.size);
  std::memcpy(bytes.get(), segment.data, segment.size);
  const std::byte* const data = bytes.get();
  return {data, segment.size, std::move(bytes)};
}

}  // namespace

/// Returns the buffer at whose end a frame of `size` bytes belongs.
wire::Bytes& Outbox::buffer_for(std::size_t size) {
  const bool shares = size <= kSmallFrame && !control_.empty() && control_.back().size() + size <= kBufferSize;
  if (!shares) control_.push_back(std::exchange(spare_, {}));
  return control_.back();
}

void Outbox::append(wire::OutFrame&& frame) {
  const std::uint64_t bulk = frame.chunked_size();
  // No bulk data is queued ahead: a small segment goes right behind its frame.
  const bool follows = bulk != 0 && bulk <= wire::kSmallBulk && bulk_.empty();
  const std::uint64_t size = frame.size() + (follows ? wire::kFrameHeaderSize + bulk : 0);
  wire::Bytes& to = buffer_for(size);
  wire::encode_frame(frame, to);
  queued_bytes_ += size;
  if (frame.lends) lend(frame);
  if (follows) {
    append_chunk_header(to, CallId{frame.header.call}, static_cast<std::size_t>(bulk));
    for (const wire::Segment& segment : frame.segments) wire::append(to, segment.view());
  } else if (bulk != 0) {
    for (wire::Segment& segment : frame.segments) {
      if (!segment.owner && segment.size != 0) segment = copy_of(segment);
    }
    queued_bytes_ += bulk;
    bulk_.push_back({CallId{frame.header.call}, std::move(frame.segments), 0, 0, bulk});
  }
}

/// Keeps the segments that `frame` lends, and leaves it those that follow as chunks.
void Outbox::lend(wire::OutFrame& frame) {
  std::vector<wire::Segment>& segments = frame.segments;
  const auto chunked = std::stable_partition(segments.begin(), segments.end(), wire::is_lent);
  Lent lent{{std::make_move_iterator(segments.begin()), std::make_move_iterator(chunked)}};
  segments.erase(segments.begin(), chunked);
  for (const wire::Segment& segment : lent.segments) lent.bytes += segment.size;
  lent_bytes_ += lent.bytes;
  lent_.push_back(std::move(lent));
}

std::vector<wire::Segment> Outbox::taken() {
  std::vector<wire::Segment> segments = std::move(lent_.front().segments);
  lent_bytes_ -= lent_.front().bytes;
  lent_.pop_front();
  return segments;
}

std::vector<wire::Segment> Outbox::take_back() {
  std::vector<wire::Segment> all;
  while (lends()) {
    std::vector<wire::Segment> segments = taken();
    std::move(segments.begin(), segments.end(), std::back_inserter(all));
  }
  return all;
}

// SE-16: fixes the next bytes to write: all control frames, then chunks of at most kMaxChunk bytes together. Nothing is
// added behind chunks that are not written yet. Chunks go with each round of control frames, so that a stream of these
// does not hold tensors back for ever (SE-17).
void Outbox::commit() {
  has_left_frames_ = has_chunk_ && !control_.empty();
  if (has_chunk_) return;
  for (wire::Bytes& frame : control_) committed_.push_back({std::move(frame), {}});
  control_.clear();
  // Takes one large chunk, or several small chunks.
  for (std::size_t room = wire::kMaxChunk; !bulk_.empty() && (!has_chunk_ || bulk_.front().rest <= room);) {
    room -= cut_chunk();
  }
}

/// Moves the next chunk of the first bulk to the committed bytes. Returns the size of the chunk in bytes, without its
/// header.
std::size_t Outbox::cut_chunk() {
  Bulk& bulk = bulk_.front();
  const auto size_of_chunk = static_cast<std::size_t>(std::min<std::uint64_t>(bulk.rest, wire::kMaxChunk));
  std::size_t rest = size_of_chunk;
  wire::Bytes bytes;
  append_chunk_header(bytes, bulk.call, rest);
  committed_.push_back({std::move(bytes), {}});
  queued_bytes_ += wire::kFrameHeaderSize;
  has_chunk_ = true;
  bulk.rest -= rest;
  while (rest != 0) {
    wire::Segment& from = bulk.segments[bulk.next];
    const std::size_t size = std::min(rest, from.size - bulk.offset);
    const bool is_last = bulk.offset + size == from.size;
    if (size != 0) {
      // The last piece of a segment takes the segment's owner along, so that the owner is released when that piece is
      // written.
      committed_.push_back({{}, {from.data + bulk.offset, size, is_last ? std::move(from.owner) : from.owner}});
    }
    rest -= size;
    bulk.offset += size;
    if (is_last) {
      ++bulk.next;
      bulk.offset = 0;
    }
  }
  if (bulk.rest == 0) bulk_.pop_front();
  return size_of_chunk;
}

std::size_t Outbox::gather(std::span<iovec> out) {
  commit();
  std::size_t count = 0;
  std::size_t skip = written_;
  for (auto piece = committed_.begin(); piece != committed_.end() && count < out.size(); ++piece) {
    const wire::ByteView bytes = piece->view().subspan(skip);
    skip = 0;
    // writev takes a pointer to non-const and does not write through it.
    out[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }
  return count;
}

void Outbox::consume(std::size_t bytes) {
  queued_bytes_ -= bytes;
  while (bytes != 0) {
    const std::size_t rest = committed_.front().view().size() - written_;
    if (bytes < rest) {
      written_ += bytes;
      return;
    }
    bytes -= rest;
    written_ = 0;
    wire::Bytes& buffer = committed_.front().bytes;
    if (buffer.capacity() > spare_.capacity() && buffer.capacity() <= kSmallFrame) {
      buffer.clear();
      spare_ = std::move(buffer);
    }
    committed_.pop_front();
  }
  if (committed_.empty()) has_chunk_ = false;  // chunks stand behind all other committed pieces
}

}  // namespace caftan::net
