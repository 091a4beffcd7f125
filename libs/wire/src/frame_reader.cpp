#include "caftan/wire/internal/frame_reader.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace caftan::wire {

namespace {

constexpr std::size_t kBufferSize = 64 * 1024;

/// Returns the u64 with this index in the content of a section.
std::uint64_t number_at(ByteView content, std::size_t index) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, content.data() + 8 * index, 8);
  return number;
}

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

std::uint64_t FrameReader::Incomplete::size(std::size_t segment) const noexcept { return number_at(sizes, segment); }

std::uint64_t FrameReader::Incomplete::place(std::size_t segment) const noexcept {
  return places.empty() ? 0 : number_at(places, segment);
}

/// Returns the rest of the segment that the current chunk fills; empty if the message is skipped. Precondition: the
/// state is `chunk`, and the message that lacks bytes of chunks has begun that segment.
std::span<std::byte> FrameReader::chunk_room() {
  Incomplete& message = *chunk_target();
  if (!message.frame.received) return {};
  const std::span<std::byte> rest = message.frame.segments[message.chunked.segment].span();
  return rest.subspan(message.chunked.offset)
      .first(std::min<std::size_t>(rest.size() - message.chunked.offset, chunk_left_));
}

void FrameReader::took_chunk(std::size_t bytes) {
  Incomplete& message = *chunk_target();
  message.chunked.offset += bytes;
  message.chunks_missing -= bytes;
  chunk_left_ -= static_cast<std::uint32_t>(bytes);
  if (chunk_left_ == 0) state_ = State::header;
}

std::optional<FrameReader::Place> FrameReader::place() {
  if (!has_place()) return std::nullopt;
  Incomplete& message = incomplete_.front();
  begin_segment(message, message.placed, true);
  if (!message.frame.received) return std::nullopt;
  const auto [segment, offset] = message.placed;
  return Place{message.place(segment) + offset, message.frame.segments[segment].span().subspan(offset)};
}

void FrameReader::took_place(std::size_t bytes) {
  Incomplete& message = incomplete_.front();
  message.placed.offset += bytes;
  message.places_missing -= bytes;
}

/// Counts the messages at the front that lack no bytes of chunks.
void FrameReader::skip_filled() noexcept {
  while (const Incomplete* const message = chunk_target()) {
    if (message->chunks_missing != 0) return;
    ++filled_;
  }
}

Result<FrameReader::Item> FrameReader::next() {
  for (;;) {
    if (!incomplete_.empty() && (state_ == State::header || state_ == State::chunk)) {
      if (state_ == State::chunk && chunk_target()->chunks_missing == 0) {
        return Error(Errc::malformed_payload, "a chunk is longer than its message");
      }
      skip_filled();
      if (Incomplete* const message = chunk_target()) begin_segment(*message, message->chunked, false);
      Incomplete& oldest = incomplete_.front();
      if (oldest.chunks_missing == 0 && oldest.places_missing == 0) {
        begin_segment(oldest, oldest.chunked, false);
        begin_segment(oldest, oldest.placed, true);
        after_bye_ = after_bye_ || oldest.frame.header.kind == FrameKind::bye;
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
    --filled_;
  }
  return frame;
}

Result<void> FrameReader::begin_frame(const FrameHeader& header) {
  if (after_bye_ && header.kind != FrameKind::taken) return Error(Errc::malformed_payload, "a frame after bye");
  frames_.fetch_add(1, std::memory_order_relaxed);
  if (header.kind == FrameKind::chunk) {
    skip_filled();
    if (!chunk_target()) return Error(Errc::malformed_payload, "a chunk that belongs to no message");
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
  segment_places_ = {};
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
      case SectionType::places:
        segment_places_ = content;
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
  if (frame_.header.bulk_size == 0 && segment_sizes_.empty() && segment_places_.empty()) {
    state_ = State::whole;
    return {};
  }
  if (segment_sizes_.size() % 8 != 0) return Error(Errc::malformed_payload, "a section of segment sizes is cut off");
  if (!segment_places_.empty() && segment_places_.size() != segment_sizes_.size()) {
    return Error(Errc::malformed_payload, "not as many places as segments");
  }
  const std::size_t count = segment_sizes_.size() / 8;
  if (const auto fits = limits_.check(0, 0, count); !fits) return fits;
  Incomplete message;
  message.sizes = segment_sizes_;
  message.places = segment_places_;
  std::uint64_t left = frame_.header.bulk_size;
  for (std::size_t segment = 0; segment < count; ++segment) {
    const std::uint64_t size = message.size(segment);
    if (size > left) return Error(Errc::malformed_payload, "segments are larger than their message");
    left -= size;
    (message.place(segment) == 0 ? message.chunks_missing : message.places_missing) += size;
  }
  if (left != 0) return Error(Errc::malformed_payload, "segments are smaller than their message");
  message.frame = std::move(frame_);
  message.frame.lent = !message.places.empty();
  incomplete_.push_back(std::move(message));
  state_ = State::header;
  return {};
}

/// Takes memory for the next segment that is filled in this way, once the one before it is full; a segment without
/// bytes is full at once. Without memory the rest of the message is skipped (WI-22).
void FrameReader::begin_segment(Incomplete& message, Cursor& at, bool is_placed) {
  const std::size_t count = message.sizes.size() / 8;
  base::Reused<std::vector<Block>>& blocks = message.frame.segments;
  for (; message.frame.received && at.segment < count; ++at.segment, at.offset = 0) {
    if ((message.place(at.segment) != 0) != is_placed) continue;
    if (blocks.empty()) {
      blocks.reuse();
      blocks.resize(count);
    }
    const std::uint64_t size = message.size(at.segment);
    if (!blocks[at.segment].data()) {
      auto block = pool_.take(size);
      if (!block) {
        message.frame.received =
            Error(block.error().code(), "the tensors could not be received: " + block.error().text());
        message.places_missing = 0;
        blocks.clear();
        return;
      }
      blocks[at.segment] = std::move(*block);
    }
    if (at.offset < size) return;
  }
}

void FrameReader::read_chunk() {
  const Incomplete& message = *chunk_target();
  const std::span<std::byte> target = chunk_room();
  const std::uint64_t wanted =
      message.frame.received ? target.size() : std::min<std::uint64_t>(chunk_left_, message.chunks_missing);
  const std::size_t part = std::min<std::uint64_t>(wanted, end_ - begin_);
  if (message.frame.received) std::memcpy(target.data(), buffer_.get() + begin_, part);
  took_chunk(part);
  begin_ += part;
}

}  // namespace caftan::wire
