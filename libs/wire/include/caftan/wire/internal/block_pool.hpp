/// Memory for received bytes: 64-byte aligned, uninitialised blocks that go back to a pool instead of to the system,
/// because the first touch of fresh memory costs more than the copy into it. Start with `BlockPool::take`.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "caftan/base/result.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::wire {

namespace detail {
struct BlockHeader;
struct BlockPoolState;
}  // namespace detail

inline constexpr std::size_t kBlockAlignment = 64;

/// One block of a pool. Move-only; its destructor gives the block back, on any thread, also after the pool is gone.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    if (this == &other) return *this;
    give_back(std::exchange(data_, std::exchange(other.data_, nullptr)));
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~Block() { give_back(data_); }

  /// Returns the memory; null only for a default-made, moved-from or released block.
  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  /// Returns the number of bytes that were asked for.
  std::size_t size() const noexcept { return size_; }
  std::span<std::byte> span() noexcept { return {data_, size_}; }
  ByteView view() const noexcept { return {data_, size_}; }

  /// Gives up ownership without an allocation; the caller must later pass the pointer to `give_back`, once. So a
  /// tensor's storage can own a block.
  [[nodiscard]] std::byte* release() && noexcept {
    size_ = 0;
    return std::exchange(data_, nullptr);
  }
  /// Returns a block that was released; null is allowed. Threads: any.
  static void give_back(void* data) noexcept;

  /// Turns the block into a shared owner, whose last copy gives the block back; it points at data(). Allocates nothing.
  /// Precondition: the block has memory.
  std::shared_ptr<const void> share() &&;

 private:
  friend class BlockPool;
  Block(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Caches freed blocks by power-of-two class, 64 B and up; the one of a class that was freed last changes hands without
/// a lock. Blocks of 64 KiB and more are mapped (from 2 MiB on with huge pages), smaller ones come from operator new.
/// Threads: any, all methods.
class BlockPool {
 public:
  struct Options {
    std::size_t max_cached_bytes = std::size_t{256} << 20;  ///< freed blocks beyond this go back to the system
  };
  BlockPool() : BlockPool(Options{}) {}
  explicit BlockPool(Options options);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  /// Frees the cached blocks. Other blocks stay valid and are freed when they are given back.
  ~BlockPool();

  /// Returns a block of `size` >= 0 bytes with unset contents.
  /// Errors: limit_exceeded when the system has no such memory.
  Result<Block> take(std::size_t size);

  /// Gives cached blocks back to the system, largest first, until at most `keep` bytes stay cached.
  void trim(std::size_t keep = 0) noexcept;
  /// Returns the bytes of cached (free) blocks.
  std::size_t cached_bytes() const noexcept;

 private:
  std::shared_ptr<detail::BlockPoolState> state_;
};

}  // namespace caftan::wire
