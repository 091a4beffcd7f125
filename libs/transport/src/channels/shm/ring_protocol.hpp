/// The counters and bells of a ring in shared memory, for any memory that they may lie in: a mapped header (ring.hpp),
/// or the memory of a model test. Rules: docs/protocols/shm.md, DP-2 and DP-3. Start with `WriteSide` and `ReadSide`.
///
/// A `Memory` has `load(word)` and `store(word, value)`, ordered as acquire and release, `compare_exchange(word,
/// expected, desired)`, which returns whether it succeeded, and `fence()`, which orders stores before it and loads
/// behind it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace caftan::transport {

/// The words in the header of a ring, each in a cache line of its own.
enum class RingWord : std::uint8_t {
  tail,        ///< bytes written; only the writer stores it
  head,        ///< bytes read; only the reader stores it
  bytes_bell,  ///< how the reader waits for bytes
  room_bell,   ///< how the writer waits for room
  beat,        ///< signs of life of the writer; only the writer stores it
};
inline constexpr std::size_t kRingWords = 5;

/// A counter of one side's private memory. The side that owns it changes it; other threads of its process may read it.
class OwnCounter {
 public:
  OwnCounter() = default;
  OwnCounter(const OwnCounter& other) noexcept : value_(other.get()) {}
  OwnCounter& operator=(const OwnCounter& other) noexcept {
    set(other.get());
    return *this;
  }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A bell's word is a count of sleeps and a state. Its sleeper alone begins a sleep.
namespace bell {
inline constexpr std::uint64_t kAwake = 0;
inline constexpr std::uint64_t kAsleep = 1;
inline constexpr std::uint64_t kRung = 2;
inline constexpr std::uint64_t kStateMask = 3;
inline constexpr unsigned kStateBits = 2;

/// Answers the sleep of the other side, after a counter was stored. Returns whether the bell must be rung: at most once
/// for each sleep.
template <class Memory>
bool answer(Memory& memory, RingWord word) noexcept {
  memory.fence();
  const std::uint64_t seen = memory.load(word);
  if ((seen & kStateMask) != kAsleep) return false;
  return memory.compare_exchange(word, seen, (seen & ~kStateMask) | kRung);
}

/// The side that sleeps. Threads: one at a time, but for `is_rung`.
template <class Memory>
class Sleeper {
 public:
  Sleeper(Memory memory, RingWord word) : memory_(memory), word_(word) {}
  /// Begins a sleep. Afterwards the caller takes stale rings away, then looks at the counter that it waits for, and
  /// sleeps only if there is nothing.
  void arm() noexcept {
    ++sleeps_;
    memory_.store(word_, (sleeps_ << kStateBits) | kAsleep);
    memory_.fence();
  }
  /// Ends a sleep that the other side has not answered.
  void disarm() noexcept { memory_.store(word_, (sleeps_ << kStateBits) | kAwake); }
  bool is_rung() noexcept { return (memory_.load(word_) & kStateMask) == kRung; }

 private:
  Memory memory_;
  RingWord word_;
  std::uint64_t sleeps_ = 0;
};
}  // namespace bell

/// The counters of the side that writes. Threads: one at a time; `has_room` any.
template <class Memory>
class WriteSide {
 public:
  WriteSide(Memory memory, std::uint64_t size) : memory_(memory), size_(size) {}

  /// Returns how many bytes may be written, nothing if the reader's counter is one that no honest reader stores.
  std::optional<std::uint64_t> room() noexcept {
    const std::uint64_t head = memory_.load(RingWord::head);
    if (head - head_ > tail_.get() - head_) return std::nullopt;
    head_ = head;
    return size_ - (tail_.get() - head_);
  }
  /// Hands over bytes that were copied into the ring. Returns whether the reader's bell must be rung.
  bool publish(std::uint64_t bytes) noexcept {
    tail_.set(tail_.get() + bytes);
    memory_.store(RingWord::tail, tail_.get());
    return bell::answer(memory_, RingWord::bytes_bell);
  }
  /// Returns whether a writer that waits has to look: half of the ring is free, or the reader's counter is wrong.
  bool has_room() noexcept {
    const std::uint64_t unread = tail_.get() - memory_.load(RingWord::head);
    return unread > size_ || size_ - unread >= size_ / 2;
  }
  /// Where the next byte goes.
  std::uint64_t position() const noexcept { return tail_.get() % size_; }

 private:
  Memory memory_;
  std::uint64_t size_;
  OwnCounter tail_;
  std::uint64_t head_ = 0;  // the reader's counter when it was last loaded
};

/// The counters of the side that reads. Threads: one at a time; `has_bytes` any.
template <class Memory>
class ReadSide {
 public:
  ReadSide(Memory memory, std::uint64_t size) : memory_(memory), size_(size) {}

  /// Returns how many bytes may be read, nothing if the writer's counter is one that no honest writer stores.
  std::optional<std::uint64_t> available() noexcept {
    tail_ = memory_.load(RingWord::tail);
    const std::uint64_t unread = tail_ - head_.get();
    if (unread > size_) return std::nullopt;
    return unread;
  }
  /// Gives back the room of bytes that were copied out of the ring. Returns whether the writer's bell must be rung.
  bool publish(std::uint64_t bytes) noexcept {
    head_.set(head_.get() + bytes);
    memory_.store(RingWord::head, head_.get());
    if (size_ - (tail_ - head_.get()) < size_ / 2) return false;
    return bell::answer(memory_, RingWord::room_bell);
  }
  /// Returns whether a reader that waits has to look: there are bytes, or the writer's counter is wrong.
  bool has_bytes() noexcept { return memory_.load(RingWord::tail) != head_.get(); }
  /// Where the next byte is.
  std::uint64_t position() const noexcept { return head_.get() % size_; }

 private:
  Memory memory_;
  std::uint64_t size_;
  OwnCounter head_;
  std::uint64_t tail_ = 0;  // the writer's counter when it was last loaded
};

}  // namespace caftan::transport
