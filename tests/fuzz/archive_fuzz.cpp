// Decodes arbitrary bytes as one of several types (the first byte says which). What decodes must be written again in as
// many bytes, which decode to the same: sets may be in another order, nothing else has two forms.
#include <algorithm>
#include <cstdlib>

#include "archive_examples.hpp"

namespace {

using namespace caftan;
using namespace caftan::wire;

void require(bool holds) {
  if (!holds) std::abort();
}

/// The order of an unordered map depends on how it was filled, so two encodings are compared as sorted bytes.
Bytes sorted(Bytes bytes) {
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

template <class T>
void decode_and_write_again(ByteView input) {
  T value = wire::detail::blank<T>();
  const Result<void> read = decode_into(input, value);
  if (!read) {
    require(read.error().code() == Errc::malformed_payload || read.error().code() == Errc::limit_exceeded);
    return;
  }
  const Result<Bytes> written = encode(value);
  require(written.has_value() && written->size() == input.size());
  T again = wire::detail::blank<T>();
  require(decode_into(*written, again).has_value());
  require(sorted(*encode(again)) == sorted(*written));
}

template <std::size_t... Is>
void decode_as(std::size_t type, ByteView input, std::index_sequence<Is...>) {
  ((Is == type ? decode_and_write_again<std::tuple_element_t<Is, FuzzTypes>>(input) : void()), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr std::size_t kTypes = std::tuple_size_v<FuzzTypes>;
  decode_as(data[0] % kTypes, std::as_bytes(std::span(data + 1, size - 1)), std::make_index_sequence<kTypes>());
  return 0;
}
