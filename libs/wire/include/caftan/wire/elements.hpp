/// How the elements of sequences travel. Include archive.hpp instead.
///
/// Sequences are a count and their elements; each element takes at least one byte (one of none gets a pad byte), so
/// that a count can always be checked against the bytes that are left. Memory grows with what was really read.
#pragma once

#include <algorithm>
#include <cstddef>

#include "caftan/wire/in_archive.hpp"

namespace caftan::wire::detail {

template <class T>
void save_element(OutArchive& to, const T& value) {
  if constexpr (Scalar<T>) {
    to << value;
  } else {
    const std::size_t before = to.position();
    to << value;
    if (to.position() == before) to << std::byte{0};
  }
}

template <class T>
void load_element(InArchive& from, T& value) {
  if constexpr (Scalar<T>) {
    from >> value;
  } else {
    const std::size_t before = from.position();
    from >> value;
    if (from.position() == before && from.take(1)[0] != std::byte{0}) throw DecodeError("bad pad byte");
  }
}

/// Elements without their count.
template <class T>
void save_elements(OutArchive& to, const T* first, std::size_t count) {
  if constexpr (Blittable<T>) {
    to.save_binary(first, count * sizeof(T));
  } else {
    for (std::size_t i = 0; i < count; ++i) save_element(to, first[i]);
  }
}
template <class T>
void load_elements(InArchive& from, T* first, std::size_t count) {
  if constexpr (Blittable<T>) {
    if (count > from.remaining() / sizeof(T)) throw DecodeError("truncated");
    from.load_binary(first, count * sizeof(T));
  } else {
    for (std::size_t i = 0; i < count; ++i) load_element(from, first[i]);
  }
}

/// Returns how many elements may be reserved for a count that was read: with large elements, few bytes of input could
/// otherwise claim much memory.
template <class T>
constexpr std::size_t reserve_ahead(std::size_t count) {
  return std::min<std::size_t>(count, std::max<std::size_t>(1, (std::size_t{16} << 10) / sizeof(T)));
}

}  // namespace caftan::wire::detail
