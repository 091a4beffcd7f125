#include "channels/shm/ring.hpp"

#include <algorithm>
#include <cstring>

namespace caftan::transport {
namespace {

/// Copies bytes that another process may change meanwhile. Not inlined, and the compiler may assume nothing of memory
/// behind it: what is read afterwards is the copy, never the shared bytes once more (DP-2).
[[gnu::noinline]] void copy_shared(std::byte* to, const std::byte* from, std::size_t size) noexcept {
  std::memcpy(to, from, size);
  asm volatile("" ::: "memory");
}

}  // namespace

/// Copies to `ahead` bytes behind what was handed over.
void RingWriter::copy_in(std::size_t ahead, const std::byte* from, std::size_t size) noexcept {
  const std::size_t at = (side_.position() + ahead) % place_.size;
  const std::size_t first = std::min(size, place_.size - at);
  copy_shared(place_.bytes + at, from, first);
  if (first < size) copy_shared(place_.bytes, from + first, size - first);
}

Error RingWriter::wrong_counter() {
  return Error(Errc::malformed_payload, "the peer's counter of bytes that it has read is wrong");
}

void RingReader::copy_out(std::byte* to, std::size_t size) noexcept {
  const std::size_t at = side_.position();
  const std::size_t first = std::min(size, place_.size - at);
  copy_shared(to, place_.bytes + at, first);
  if (first < size) copy_shared(to + first, place_.bytes, size - first);
}

Error RingReader::wrong_counter() {
  return Error(Errc::malformed_payload, "the peer's counter of bytes that it has written is wrong");
}

}  // namespace caftan::transport
