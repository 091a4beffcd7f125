#include "caftan/wire/internal/out_frame.hpp"

#include <span>

namespace caftan::wire {

void encode_frame(OutFrame& frame, Bytes& to) {
  const std::uint64_t sections = frame.sections_size() + frame.places_size();
  const std::uint64_t bulk = frame.bulk_size();
  frame.header.bulk_size = bulk;
  frame.header.sections_size = static_cast<std::uint32_t>(sections);
  frame.header.body_size = static_cast<std::uint32_t>(frame.body.size());
  frame.header.table_size = static_cast<std::uint32_t>(frame.table.size());

  const std::size_t behind = bulk > 0 && bulk <= kSmallBulk ? kFrameHeaderSize + static_cast<std::size_t>(bulk) : 0;
  const auto size = static_cast<std::size_t>(frame.size());
  std::byte* const header = extend(to, size + behind);
  to.resize(to.size() - (size + behind) + kFrameHeaderSize);
  encode_header(frame.header, header);
  append(to, frame.sections);
  if (!frame.segments.empty()) {
    begin_section(to, SectionType::bulk, kSectionCritical, 8 * frame.segments.size());
    for (const Segment& segment : frame.segments) append(to, std::as_bytes(std::span(&segment.size, 1)));
  }
  if (frame.lends) {
    begin_section(to, SectionType::places, kSectionCritical, 8 * frame.segments.size());
    for (const Segment& segment : frame.segments) {
      const std::uint64_t place = is_lent(segment) ? reinterpret_cast<std::uintptr_t>(segment.data) : 0;
      append(to, std::as_bytes(std::span(&place, 1)));
    }
  }
  append(to, frame.body);
  append(to, frame.table);
}

}  // namespace caftan::wire
