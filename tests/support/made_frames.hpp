/// Frames as bytes, as a peer could write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "caftan/wire/frame.hpp"

namespace caftan::wire {

/// Returns a frame as bytes; sizes are filled in.
inline Bytes make_frame(FrameHeader header, ByteView sections = {}, ByteView body = {}, ByteView table = {}) {
  header.sections_size = static_cast<std::uint32_t>(sections.size());
  header.body_size = static_cast<std::uint32_t>(body.size());
  header.table_size = static_cast<std::uint32_t>(table.size());
  Bytes bytes(kFrameHeaderSize);
  encode_header(header, bytes.data());
  append(bytes, sections);
  append(bytes, body);
  append(bytes, table);
  return bytes;
}

inline FrameHeader header_of(FrameKind kind, std::uint64_t call = 0) {
  FrameHeader header;
  header.kind = kind;
  header.call = call;
  return header;
}

/// Returns the section that announces segments of these sizes.
inline Bytes bulk_sections(const std::vector<std::uint64_t>& sizes) {
  Bytes content(8 * sizes.size());
  if (!sizes.empty()) std::memcpy(content.data(), sizes.data(), content.size());
  Bytes sections;
  append_section(sections, SectionType::bulk, kSectionCritical, content);
  return sections;
}

/// Returns a call with segments of these sizes, which follow as chunks.
inline Bytes bulk_call(std::uint64_t call, const std::vector<std::uint64_t>& sizes) {
  FrameHeader header = header_of(FrameKind::call, call);
  for (const std::uint64_t size : sizes) header.bulk_size += size;
  return make_frame(header, bulk_sections(sizes));
}

/// Returns a call with segments of these sizes, which lie at these places of the sender's memory; those at 0 follow as
/// chunks.
inline Bytes lending_call(std::uint64_t call, const std::vector<std::uint64_t>& sizes,
                          const std::vector<std::uint64_t>& places) {
  FrameHeader header = header_of(FrameKind::call, call);
  for (const std::uint64_t size : sizes) header.bulk_size += size;
  Bytes sections = bulk_sections(sizes);
  append_section(sections, SectionType::places, kSectionCritical, std::as_bytes(std::span(places)));
  return make_frame(header, sections);
}

inline Bytes chunk(std::size_t size, std::byte fill) {
  return make_frame(header_of(FrameKind::chunk), {}, Bytes(size, fill));
}

}  // namespace caftan::wire
