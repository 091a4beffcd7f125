/// `PayloadStore`: payloads of pending events that are larger than 8 bytes, in slabs of blocks of 32, 64 and 128 bytes;
/// larger ones lie by themselves. So an event of usual size costs no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "caftan/sim/internal/event.hpp"
#include "caftan/wire/bytes.hpp"

namespace caftan::sim {

/// Threads: one at a time.
class PayloadStore {
 public:
  PayloadStore() = default;
  PayloadStore(const PayloadStore&) = delete;
  PayloadStore& operator=(const PayloadStore&) = delete;
  ~PayloadStore();

  /// Puts the bytes into the event, or beside it.
  void put(Event& event, wire::ByteView bytes);
  /// Returns the bytes of an event. They lie in the event, or stay until `release`.
  static wire::ByteView view(const Event& event) noexcept;
  /// Gives the memory of the event's payload back. Exactly once for each event that was put.
  void release(const Event& event) noexcept {
    if (event.size == Event::kStored) release_block(event.payload);
  }
  /// Returns how many payloads lie here.
  std::size_t count() const noexcept { return count_; }

 private:
  static constexpr std::size_t kClasses = 3;  // 32, 64 and 128 bytes
  struct Block {
    std::uint32_t size;      // bytes of the payload behind this head
    std::uint32_t position;  // of the class; kClasses: by itself
    union {
      Block* next;  // of free ones
      std::byte first[8];
    };
  };
  void release_block(std::uint64_t payload) noexcept;
  Block* take(std::size_t position);

  std::array<Block*, kClasses> free_{};
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::vector<Block*> single_;  // blocks by themselves; `next` of each is unused
  std::size_t count_ = 0;
};

}  // namespace caftan::sim
