#include "caftan/wire/frame.hpp"

#include <bit>
#include <cstring>

#include "caftan/base/internal/enumerator_name.hpp"

namespace caftan::wire {

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian and so is every supported machine");

namespace {

template <class T>
std::byte* put(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof(T));
  return to + sizeof(T);
}

template <class T>
const std::byte* get(const std::byte* from, T& value) noexcept {
  std::memcpy(&value, from, sizeof(T));
  return from + sizeof(T);
}

}  // namespace

std::string_view name_of(FrameKind kind) noexcept { return enumerator_name(kind); }

static_assert(
    [] {
      for (std::size_t number = kFrameKinds; number < 256; ++number) {
        if (!enumerator_name(static_cast<FrameKind>(number)).empty()) return false;
      }
      return true;
    }(),
    "raise kFrameKinds");

void encode_header(const FrameHeader& header, std::byte* to) noexcept {
  to = put(to, header.sections_size);
  to = put(to, header.body_size);
  to = put(to, header.table_size);
  to = put(to, header.kind);
  to = put(to, header.flags);
  to = put(to, header.cpu);
  to = put(to, header.call);
  to = put(to, header.remaining_us);
  to = put(to, header.trace);
  put(to, header.bulk_size);
}

Result<FrameHeader> decode_header(const std::byte* from) {
  FrameHeader header;
  from = get(from, header.sections_size);
  from = get(from, header.body_size);
  from = get(from, header.table_size);
  from = get(from, header.kind);
  from = get(from, header.flags);
  from = get(from, header.cpu);
  from = get(from, header.call);
  from = get(from, header.remaining_us);
  from = get(from, header.trace);
  get(from, header.bulk_size);
  if (!is_known(header.kind)) {
    return Error(Errc::malformed_payload, "unknown frame kind " + std::to_string(static_cast<unsigned>(header.kind)));
  }
  if ((header.flags & ~kFlagError) != 0) return Error(Errc::malformed_payload, "reserved frame flags are set");
  if (header.kind == FrameKind::chunk &&
      (header.body_size > kMaxChunk || header.sections_size != 0 || header.table_size != 0 || header.bulk_size != 0)) {
    return Error(Errc::malformed_payload, "a chunk frame of impossible size");
  }
  if (header.kind == FrameKind::taken && (header.payload_size() != 0 || header.bulk_size != 0)) {
    return Error(Errc::malformed_payload, "a taken frame with content");
  }
  if (header.kind == FrameKind::ended && (header.payload_size() != 0 || header.bulk_size != 0)) {
    return Error(Errc::malformed_payload, "an ended frame with content");
  }
  return header;
}

void begin_section(Bytes& sections, SectionType type, std::uint16_t flags, std::size_t size) {
  std::byte* to = put(extend(sections, kSectionHeaderSize), type);
  to = put(to, flags);
  put(to, static_cast<std::uint32_t>(size));
}

void append_section(Bytes& sections, SectionType type, std::uint16_t flags, ByteView content) {
  begin_section(sections, type, flags, content.size());
  append(sections, content);
}

Result<std::optional<SectionReader::Section>> SectionReader::next() {
  if (rest_.empty()) return std::optional<Section>();
  if (rest_.size() < 8) return Error(Errc::malformed_payload, "a section header is cut off");
  Section section{};
  std::uint32_t size = 0;
  const std::byte* from = get(rest_.data(), section.type);
  from = get(from, section.flags);
  get(from, size);
  rest_ = rest_.subspan(8);
  if (size > rest_.size()) return Error(Errc::malformed_payload, "a section is longer than its frame");
  section.content = rest_.first(size);
  rest_ = rest_.subspan(size);
  return std::optional<Section>(section);
}

}  // namespace caftan::wire
