/// A piece of a message that is written in place, without a copy: tensor storage, a shared block, a buffer.
#pragma once

#include <cstddef>
#include <memory>

#include "caftan/wire/bytes.hpp"

namespace caftan::wire {

/// Bytes to be gathered into one write, and the owner that keeps them alive until then. Copying shares the bytes.
/// The bytes must not change before they are written: the code that makes a segment ensures that. Bytes without an
/// owner live only until the call that takes them for writing has returned, which copies them.
struct Segment {
  const std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> owner;

  ByteView view() const noexcept { return {data, size}; }
};

}  // namespace caftan::wire
