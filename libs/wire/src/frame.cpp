#include "caftan/wire/frame.hpp"

#include <bit>
#include <cstring>

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

std::string_view name_of(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::ping:
      return "ping";
    case FrameKind::pong:
      return "pong";
    case FrameKind::bye:
      return "bye";
    case FrameKind::chunk:
      return "chunk";
    case FrameKind::call:
      return "call";
    case FrameKind::create:
      return "create";
    case FrameKind::fetch:
      return "fetch";
    case FrameKind::method:
      return "method";
    case FrameKind::op:
      return "op";
    case FrameKind::response:
      return "response";
    case FrameKind::cancel:
      return "cancel";
    case FrameKind::actor_message:
      return "actor_message";
    case FrameKind::actor_reply:
      return "actor_reply";
    case FrameKind::down:
      return "down";
    case FrameKind::exit:
      return "exit";
    case FrameKind::monitor:
      return "monitor";
    case FrameKind::demonitor:
      return "demonitor";
    case FrameKind::link:
      return "link";
    case FrameKind::unlink:
      return "unlink";
  }
  return {};
}

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
  return header;
}

void append_section(Bytes& sections, SectionType type, std::uint16_t flags, ByteView content) {
  const std::size_t start = sections.size();
  sections.resize(start + 8);
  std::byte* to = put(sections.data() + start, type);
  to = put(to, flags);
  put(to, static_cast<std::uint32_t>(content.size()));
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
