/// Byte buffers of the wire: a vector whose growth does not zero memory that is about to be overwritten.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace caftan::wire {

/// An allocator that default-initializes: `resize` leaves new bytes unset.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    /// This allocator for U.
    using other = UninitializedAllocator<U>;
  };
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    if constexpr (sizeof...(Args) == 0) {
      ::new (static_cast<void*>(at)) U;
    } else {
      ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
  }
};

/// A buffer whose growth leaves new bytes unset.
using Bytes = std::vector<std::byte, UninitializedAllocator<std::byte>>;
/// Bytes that something else owns.
using ByteView = std::span<const std::byte>;

/// Makes `to` longer by `size` bytes, which are unset, and returns the first of them.
inline std::byte* extend(Bytes& to, std::size_t size) {
  const std::size_t before = to.size();
  if (size > to.capacity() - before) {
    // resize() would move the present bytes one by one through the allocator.
    Bytes larger;
    constexpr std::size_t kSecond = 1024;  // capacity in bytes that a buffer gets when it first grows
    larger.reserve(before == 0 ? size : std::max({before + size, 2 * before, kSecond}));
    larger.resize(before);
    if (before != 0) std::memcpy(larger.data(), to.data(), before);
    to.swap(larger);
  }
  to.resize(before + size);
  return to.data() + before;
}

/// Appends bytes; `from` must not lie in `to`.
inline void append(Bytes& to, ByteView from) {
  if (!from.empty()) std::memcpy(extend(to, from.size()), from.data(), from.size());  // insert() copies byte by byte
}

}  // namespace caftan::wire

// The library compiles the members of this vector: `resize` and the destructor loop over all bytes where the including
// program is compiled without optimization.
extern template class std::vector<std::byte, caftan::wire::UninitializedAllocator<std::byte>>;
