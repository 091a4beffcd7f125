/// Byte buffers of the wire: a vector whose growth does not zero memory that is about to be overwritten.
#pragma once

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

/// Appends bytes; `from` must not lie in `to`.
inline void append(Bytes& to, ByteView from) {
  if (from.empty()) return;
  // resize and memcpy, because insert() would construct byte by byte through the allocator.
  const std::size_t before = to.size();
  to.resize(before + from.size());
  std::memcpy(to.data() + before, from.data(), from.size());
}

}  // namespace caftan::wire
