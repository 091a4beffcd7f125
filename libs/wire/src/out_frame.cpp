#include "caftan/wire/internal/out_frame.hpp"

#include <cstring>

namespace caftan::wire {

Bytes encode_frame(OutFrame& frame) {
  const std::uint64_t sections = frame.sections_size();
  frame.header.bulk_size = frame.bulk_size();
  frame.header.sections_size = static_cast<std::uint32_t>(sections);
  frame.header.body_size = static_cast<std::uint32_t>(frame.body.size());
  frame.header.table_size = static_cast<std::uint32_t>(frame.table.size());

  Bytes bytes;
  bytes.reserve(kFrameHeaderSize + sections + frame.body.size() + frame.table.size());
  bytes.resize(kFrameHeaderSize);
  encode_header(frame.header, bytes.data());
  append(bytes, frame.sections);
  if (!frame.segments.empty()) {
    Bytes sizes(8 * frame.segments.size());
    for (std::size_t i = 0; i < frame.segments.size(); ++i) {
      const std::uint64_t size = frame.segments[i].size;
      std::memcpy(sizes.data() + 8 * i, &size, 8);
    }
    append_section(bytes, SectionType::bulk, kSectionCritical, sizes);
  }
  append(bytes, frame.body);
  append(bytes, frame.table);
  return bytes;
}

}  // namespace caftan::wire
