// Takes arbitrary bytes as a checkpoint file; also with its checksum and length made right, so that the body is
// reached. What is accepted is written and read again.
#include <cstdint>
#include <cstdlib>

#include "caftan/wire/checkpoint_file.hpp"

namespace {

using namespace caftan;
using namespace caftan::wire;

void require(bool holds) {
  if (!holds) std::abort();
}

void read(ByteView bytes) {
  const auto file = decode_checkpoint(bytes, "test");
  if (!file) {
    require(file.error().code() == Errc::malformed_payload || file.error().code() == Errc::unsupported);
    return;
  }
  const auto again = encode_checkpoint(*file);
  require(again && decode_checkpoint(*again, "test").has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input = std::as_bytes(std::span(data, size));
  read(input);
  Bytes file = encode_checkpoint({.kind = "test"}).value();
  file.resize(8 + sizeof(std::uint32_t));  // magic and version
  const std::uint32_t checksum = crc32c(input);
  const std::uint64_t length = input.size();
  append(file, std::as_bytes(std::span(&checksum, 1)));
  append(file, std::as_bytes(std::span(&length, 1)));
  append(file, input);
  read(file);
  return 0;
}
