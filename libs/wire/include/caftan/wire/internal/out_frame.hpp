/// A frame that is to be sent, and how it is written. Layout: docs/protocols/wire.md.
#pragma once

#include <cstdint>
#include <vector>

#include "caftan/base/reused.hpp"
#include "caftan/wire/bytes.hpp"
#include "caftan/wire/frame.hpp"
#include "caftan/wire/internal/segment.hpp"

namespace caftan::wire {

/// Tensors of at most this many bytes in all are copied right behind their frame, when no others are queued ahead.
inline constexpr std::size_t kSmallBulk = 4 * 1024;

/// Returns whether a segment is lent by a message that lends.
inline bool is_lent(const Segment& segment) noexcept { return segment.size >= kLentFrom && segment.owner; }

/// The parts of a frame. The views are copied when the frame is written; the segments travel behind it, and are kept
/// alive until they are written, or until the peer has read those that are lent.
struct OutFrame {
  FrameHeader header;  ///< the header; `encode_frame` fills in its sizes
  ByteView sections;
  ByteView body;
  ByteView table;
  base::Reused<std::vector<Segment>> segments;
  std::uint64_t message = 0;  ///< of an actor_message: the id of its type, by which traffic is counted; not written
  /// Segments of at least kLentFrom bytes are lent: a section says where they lie, and they do not follow.
  bool lends = false;

  /// Returns the bytes of all sections of the frame but that of places: with segments, their sizes are sent as one
  /// section more.
  std::uint64_t sections_size() const noexcept {
    return sections.size() + (segments.empty() ? 0 : kSectionHeaderSize + 8 * segments.size());
  }
  /// Returns the bytes of the section that says where the segments lie.
  std::uint64_t places_size() const noexcept { return lends ? kSectionHeaderSize + 8 * segments.size() : 0; }
  /// Returns the bytes of the frame, without those of its segments.
  std::uint64_t size() const noexcept {
    return kFrameHeaderSize + sections_size() + places_size() + body.size() + table.size();
  }
  /// Returns the bytes of the segments that follow as chunks.
  std::uint64_t chunked_size() const noexcept {
    std::uint64_t chunked = 0;
    for (const Segment& segment : segments) chunked += lends && is_lent(segment) ? 0 : segment.size;
    return chunked;
  }
  /// Bytes of the tensors.
  std::uint64_t bulk_size() const noexcept {
    std::uint64_t bulk = 0;
    for (const Segment& segment : segments) bulk += segment.size;
    return bulk;
  }
};

/// Appends the bytes of `frame` to `to`, without those of its segments, and fills in the sizes in its header. `to` has
/// room for a small bulk behind them.
void encode_frame(OutFrame& frame, Bytes& to);

}  // namespace caftan::wire
