#include "caftan/wire/internal/frame_reader.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace caftan::wire {

namespace {

constexpr std::size_t kBufferSize = 64 * 1024;

void keep_first(std::optional<ByteView>& field, ByteView content) {
  if (!field) field = content;
}

}  // namespace

FrameReader::Room FrameReader::room() {
  if (!buffer_) buffer_.reset(new std::byte[kBufferSize]);
  const std::span<std::byte> direct = direct_room();
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0 && kBufferSize - end_ < kFrameHeaderSize) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return {direct, {buffer_.get() + end_, kBufferSize - end_}};
}

void FrameReader::filled(std::size_t bytes) {
  const std::size_t direct = std::min(bytes, direct_room().size());
  if (state_ == State::chunk) {
    took_chunk(direct);
  } else {
    payload_filled_ += direct;
  }
  end_ += bytes - direct;
}

std::size_t FrameReader::put(ByteView bytes) {
  const Room room = this->room();
  const std::size_t direct = std::min(bytes.size(), room.direct.size());
  if (direct > 0) std::memcpy(room.direct.data(), bytes.data(), direct);
  const std::size_t buffered = std::min(bytes.size() - direct, room.buffer.size());
  if (buffered > 0) std::memcpy(room.buffer.data(), bytes.data() + direct, buffered);
  filled(direct + buffered);
  return direct + buffered;
}

/// Returns where the next bytes of the stream belong when the buffer is empty: directly in a payload or a tensor.
std::span<std::byte> FrameReader::direct_room() {
  if (begin_ != end_) return {};
  if (state_ == State::chunk) return chunk_room();
  if (state_ == State::payload) {
    return {frame_.payload.data() + payload_filled_, frame_.payload.size() - payload_filled_};
  }
  return {};
}

/// Returns the rest of the segment that the current chunk fills; empty if the message is skipped. Precondition: the
/// state is `chunk`, and begin_segment was called.
std::span<std::byte> FrameReader::chunk_room() {
  Incomplete& message = incomplete_.front();
  if (!message.frame.received) return {};
  Block& block = message.frame.segments.back();
  return {block.data() + message.offset, std::min<std::size_t>(block.size() - message.offset, chunk_left_)};
}

void FrameReader::took_chunk(std::size_t bytes) {
  Incomplete& message = incomplete_.front();
  message.offset += bytes;
  message.missing -= bytes;
  chunk_left_ -= static_cast<std::uint32_t>(bytes);
  if (chunk_left_ == 0) state_ = State::header;
}

Result<FrameReader::Item> FrameReader::next() {
  for (;;) {
    if (!incomplete_.empty() && (state_ == State::header || state_ == State::chunk)) {
      begin_segment();
      if (incomplete_.front().missing == 0) {
        if (state_ == State::chunk) return Error(Errc::malformed_payload, "a chunk is longer than its message");
        after_bye_ = after_bye_ || incomplete_.front().frame.header.kind == FrameKind::bye;
        return Item::frame;
      }
    }
    switch (state_) {
      case State::header: {
        if (end_ - begin_ < kFrameHeaderSize) return Item::nothing;
        const auto header = decode_header(buffer_.get() + begin_);
        if (!header) return header.error();
        begin_ += kFrameHeaderSize;
        if (const auto begun = begin_frame(*header); !begun) return begun.error();
        break;
      }
      case State::payload:
        read_payload();
        if (payload_filled_ < frame_.payload.size()) return Item::nothing;
        split_payload();
        break;
      case State::sections: {
        const auto found = find_manifest();
        if (!found) return found.error();
        if (*found) return Item::manifest;
        if (const auto ended = end_frame(); !ended) return ended.error();
        break;
      }
      case State::whole:
        after_bye_ = after_bye_ || frame_.header.kind == FrameKind::bye;
        return Item::frame;
      case State::chunk:
        if (begin_ == end_) return Item::nothing;
        read_chunk();
        break;
    }
  }
}

InFrame FrameReader::take() {
  const bool is_whole = state_ == State::whole;
  InFrame frame = std::move(is_whole ? frame_ : incomplete_.front().frame);
  if (is_whole) {
    state_ = State::header;
  } else {
    incomplete_.pop_front();
  }
  return frame;
}

Result<void> FrameReader::begin_frame(const FrameHeader& header) {
  if (after_bye_) return Error(Errc::malformed_payload, "a frame after bye");
  frames_.fetch_add(1, std::memory_order_relaxed);
  if (header.kind == FrameKind::chunk) {
    if (incomplete_.empty()) return Error(Errc::malformed_payload, "a chunk that belongs to no message");
    chunk_left_ = header.body_size;
    if (chunk_left_ > 0) state_ = State::chunk;
    return {};
  }
  if (const auto fits = limits_.check(header.payload_size(), header.bulk_size, 0); !fits) return fits;
  auto payload = pool_.take(header.payload_size());
  if (!payload) return payload.error();
  frame_.header = header;
  frame_.payload = *std::move(payload);
  payload_filled_ = 0;
  state_ = State::payload;
  return {};
}

void FrameReader::read_payload() {
  const std::size_t part = std::min(frame_.payload.size() - payload_filled_, end_ - begin_);
  if (part > 0) std::memcpy(frame_.payload.data() + payload_filled_, buffer_.get() + begin_, part);
  payload_filled_ += part;
  begin_ += part;
}

void FrameReader::split_payload() {
  const ByteView all = frame_.payload.view();
  sections_ = SectionReader(all.first(frame_.header.sections_size));
  frame_.sections = {};
  frame_.body = all.subspan(frame_.header.sections_size, frame_.header.body_size);
  frame_.table = all.subspan(frame_.header.sections_size + frame_.header.body_size);
  segment_sizes_ = {};
  state_ = State::sections;
}

/// Reads the sections up to the next manifest; returns false at their end.
Result<bool> FrameReader::find_manifest() {
  for (;;) {
    const auto section = sections_.next();
    if (!section) return section.error();
    if (!*section) return false;
    const ByteView content = (*section)->content;
    switch ((*section)->type) {
      case SectionType::rrefs:
        manifest_ = content;
        return true;
      case SectionType::bulk:
        segment_sizes_ = content;
        break;
      case SectionType::autograd:
        keep_first(frame_.sections.autograd, content);
        break;
      case SectionType::target:
        keep_first(frame_.sections.target, content);
        break;
      case SectionType::chain:
        keep_first(frame_.sections.chain, content);
        break;
      case SectionType::depth:
        keep_first(frame_.sections.depth, content);
        break;
      case SectionType::error_kinds:
        keep_first(frame_.sections.error_kinds, content);
        break;
      case SectionType::grad_mode:
        keep_first(frame_.sections.grad_mode, content);
        break;
      default:
        if ((*section)->flags & kSectionCritical) {
          return Error(Errc::protocol_mismatch,
                       "a critical section of unknown type " + std::to_string(static_cast<unsigned>((*section)->type)));
        }
    }
  }
}

/// The payload was read: the frame is whole if it has no tensors; otherwise it waits for them.
Result<void> FrameReader::end_frame() {
  std::uint64_t left = frame_.header.bulk_size;
  if (left == 0 && segment_sizes_.empty()) {
    state_ = State::whole;
    return {};
  }
  if (segment_sizes_.size() % 8 != 0) return Error(Errc::malformed_payload, "a section of segment sizes is cut off");
  if (const auto fits = limits_.check(0, 0, segment_sizes_.size() / 8); !fits) return fits;
  for (std::size_t at = 0; at < segment_sizes_.size(); at += 8) {
    std::uint64_t size = 0;
    std::memcpy(&size, segment_sizes_.data() + at, 8);
    if (size > left) return Error(Errc::malformed_payload, "segments are larger than their message");
    left -= size;
  }
  if (left != 0) return Error(Errc::malformed_payload, "segments are smaller than their message");
  const std::uint64_t missing = frame_.header.bulk_size;
  incomplete_.push_back({std::move(frame_), segment_sizes_, 0, missing});
  state_ = State::header;
  return {};
}

/// Takes memory for the next segment of the oldest message once the segment before is full; a segment without
/// bytes is full at once. Without memory the rest of the message is skipped (WI-22).
void FrameReader::begin_segment() {
  auto& [frame, sizes, offset, missing] = incomplete_.front();
  while (frame.received && 8 * frame.segments.size() < sizes.size() &&
         (frame.segments.empty() || offset == frame.segments.back().size())) {
    std::uint64_t size = 0;
    std::memcpy(&size, sizes.data() + 8 * frame.segments.size(), 8);
    auto block = pool_.take(size);
    if (block) {
      frame.segments.reuse();
      frame.segments.push_back(std::move(*block));
    } else {
      frame.received = Error(block.error().code(), "the tensors could not be received: " + block.error().text());
      frame.segments.clear();
    }
    offset = 0;
  }
}

void FrameReader::read_chunk() {
  const Incomplete& message = incomplete_.front();
  const std::span<std::byte> target = chunk_room();
  const std::uint64_t wanted =
      message.frame.received ? target.size() : std::min<std::uint64_t>(chunk_left_, message.missing);
  const std::size_t part = std::min<std::uint64_t>(wanted, end_ - begin_);
  if (message.frame.received) std::memcpy(target.data(), buffer_.get() + begin_, part);
  took_chunk(part);
  begin_ += part;
}

}  // namespace caftan::wire
