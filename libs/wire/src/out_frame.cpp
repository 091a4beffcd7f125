#include "caftan/wire/internal/out_frame.hpp"

#include <span>

namespace caftan::wire {

Bytes encode_frame(OutFrame& frame) {
  const std::uint64_t sections = frame.sections_size();
  const std::uint64_t bulk = frame.bulk_size();
  frame.header.bulk_size = bulk;
  frame.header.sections_size = static_cast<std::uint32_t>(sections);
  frame.header.body_size = static_cast<std::uint32_t>(frame.body.size());
  frame.header.table_size = static_cast<std::uint32_t>(frame.table.size());

  Bytes bytes;
  const std::size_t behind = bulk > 0 && bulk <= kSmallBulk ? kFrameHeaderSize + static_cast<std::size_t>(bulk) : 0;
  bytes.reserve(kFrameHeaderSize + sections + frame.body.size() + frame.table.size() + behind);
  bytes.resize(kFrameHeaderSize);
  encode_header(frame.header, bytes.data());
  append(bytes, frame.sections);
  if (!frame.segments.empty()) {
    begin_section(bytes, SectionType::bulk, kSectionCritical, 8 * frame.segments.size());
    for (const Segment& segment : frame.segments) append(bytes, std::as_bytes(std::span(&segment.size, 1)));
  }
  append(bytes, frame.body);
  append(bytes, frame.table);
  return bytes;
}

}  // namespace caftan::wire
