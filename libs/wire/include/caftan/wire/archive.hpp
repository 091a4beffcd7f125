/// Values to bytes and back. Any type travels that has a Boost.Serialization `serialize` (member, free, split), a
/// `Codec`, or is one of the standard library's usual types made of such. Start with `encode` and `decode`; several
/// values at once: `encode(std::tie(a, b))`, `decode_into(bytes, std::tie(a, b))`.
///
/// Format: numbers and enums little-endian in their own size (floating point: its bits), bool one byte 0 or 1, counts
/// LEB128, sequences and strings count first, optional a bool first, variant its index first, classes field by field
/// with nothing between. Pointers do not travel.
#pragma once

#include "caftan/base/result.hpp"
#include "caftan/wire/base_codecs.hpp"
#include "caftan/wire/boost_codecs.hpp"
#include "caftan/wire/in_archive.hpp"
#include "caftan/wire/out_archive.hpp"
#include "caftan/wire/std_codecs.hpp"

namespace caftan::wire {

namespace detail {
/// Turns the exception in flight into an Error; only called from a handler. Exceptions of the archives go no further.
Error encode_failure();
Error decode_failure(std::size_t position);
Error trailing_bytes(std::size_t position, std::size_t left);
}  // namespace detail

/// Appends `value` to `to`; on error `to` is as it was.
/// @param companions  lent to the codecs of types that travel out of band; none may be null
/// Errors: unsupported (the value cannot travel), limit_exceeded (no memory), and those of codecs.
template <class T, class... Companion>
Result<void> encode_into(Bytes& to, const T& value, Companion*... companions) {
  const std::size_t before = to.size();
  try {
    OutArchive archive(to);
    (archive.attach(companions), ...);
    archive << value;
    return {};
  } catch (...) {
    to.resize(before);
    return detail::encode_failure();
  }
}

/// Returns the bytes of `value`. Errors: as encode_into.
template <class T, class... Companion>
Result<Bytes> encode(const T& value, Companion*... companions) {
  Bytes bytes;
  Result<void> done = encode_into(bytes, value, companions...);
  if (!done) return done.error();
  return bytes;
}

/// Reads `value` (an object, or a tuple of references) from exactly `from`; on error it is left valid but unspecified.
/// Errors: malformed_payload (truncated, absurd, left-over bytes, nested deeper than 64), limit_exceeded (no memory),
/// and those of codecs.
template <class T, class... Companion>
Result<void> decode_into(ByteView from, T&& value, Companion*... companions) {
  InArchive archive(from);
  try {
    (archive.attach(companions), ...);
    archive >> value;
  } catch (...) {
    return detail::decode_failure(archive.position());
  }
  if (archive.remaining() > 0) return detail::trailing_bytes(archive.position(), archive.remaining());
  return {};
}

/// Returns the value of exactly `from`. Errors: as decode_into.
template <class T, class... Companion>
Result<T> decode(ByteView from, Companion*... companions) {
  Result<T> value(detail::blank<T>());
  Result<void> done = decode_into(from, *value, companions...);
  if (!done) return done.error();
  return value;
}

}  // namespace caftan::wire
