// Reads arbitrary bytes as a frame's header and sections. What is accepted must be written as the same bytes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "caftan/wire/frame.hpp"

namespace {

using namespace caftan;
using namespace caftan::wire;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input(reinterpret_cast<const std::byte*>(data), size);
  if (size < kFrameHeaderSize) return 0;
  const Result<FrameHeader> header = decode_header(input.data());
  if (!header) {
    require(header.error().code() == Errc::malformed_payload || header.error().code() == Errc::limit_exceeded);
    return 0;
  }
  require(is_known(header->kind));
  std::array<std::byte, kFrameHeaderSize> again;
  encode_header(*header, again.data());
  require(std::equal(again.begin(), again.end(), input.begin()));

  const ByteView sections = input.subspan(kFrameHeaderSize);
  SectionReader reader(sections);
  Bytes written;
  for (;;) {
    const auto section = reader.next();
    if (!section) {
      require(section.error().code() == Errc::malformed_payload);
      require(written.size() < sections.size());
      return 0;
    }
    if (!*section) break;
    append_section(written, (*section)->type, (*section)->flags, (*section)->content);
  }
  require(std::equal(written.begin(), written.end(), sections.begin(), sections.end()));
  return 0;
}
