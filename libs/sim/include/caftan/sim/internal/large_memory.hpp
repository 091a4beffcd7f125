/// `LargeMemory`: memory of an array whose elements are visited in no order. From 2 MiB on the memory lies on huge
/// pages, where Linux has them: with 10^6 processes an event otherwise waits several times for the tables of pages.
#pragma once

#include <cstddef>
#include <utility>

namespace caftan::sim {

/// Bytes without a value. Threads: one at a time.
class LargeMemory {
 public:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  LargeMemory() = default;
  /// @param alignment  of the first byte, a power of two  Errors: throws std::bad_alloc.
  LargeMemory(std::size_t bytes, std::size_t alignment);
  LargeMemory(LargeMemory&& other) noexcept : LargeMemory() { swap(other); }
  LargeMemory& operator=(LargeMemory&& other) noexcept {
    LargeMemory(std::move(other)).swap(*this);
    return *this;
  }
  ~LargeMemory();

  std::byte* data() const noexcept { return data_; }

 private:
  void swap(LargeMemory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(alignment_, other.alignment_);
  }

  std::byte* data_ = nullptr;
  std::size_t alignment_ = 1;
};

}  // namespace caftan::sim
