/// `RingWriter` and `RingReader`: one direction of a stream of bytes through shared memory, with one writer and one
/// reader in two processes. Neither believes what the other side may write. Rules: docs/protocols/shm.md, DP-1 to DP-3.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "caftan/base/result.hpp"
#include "channels/shm/ring_protocol.hpp"
#include "channels/shm/shared_memory.hpp"

namespace caftan::transport {

inline constexpr std::size_t kRingHeader = 4096;      ///< bytes before the bytes of a ring
inline constexpr std::size_t kSmallestRing = 4096;    ///< bytes
inline constexpr std::size_t kLargestRing = 1 << 24;  ///< bytes

/// Returns the bytes of the memory that holds both rings of a session, of `ring` bytes each.
constexpr std::size_t two_rings(std::size_t ring) noexcept { return 2 * (kRingHeader + ring); }

/// The words of a ring in mapped memory.
class MappedWords {
 public:
  explicit MappedWords(std::byte* header) noexcept : header_(header) {}
  std::uint64_t load(RingWord word) const noexcept { return at(word).load(std::memory_order_acquire); }
  void store(RingWord word, std::uint64_t value) noexcept { at(word).store(value, std::memory_order_release); }
  bool compare_exchange(RingWord word, std::uint64_t expected, std::uint64_t desired) noexcept {
    return at(word).compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
  }
  static void fence() noexcept {
#ifdef __SANITIZE_THREAD__
    static std::atomic<std::uint64_t> any{0};  // the thread sanitizer does not know fences
    any.fetch_add(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }

 private:
  static constexpr std::size_t kLine = 64;
  static_assert(kRingWords * kLine <= kRingHeader && std::atomic<std::uint64_t>::is_always_lock_free);
  std::atomic<std::uint64_t>& at(RingWord word) const noexcept {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(header_ + static_cast<std::size_t>(word) * kLine);
  }

  std::byte* header_;
};

/// Where one of the two rings of a session lies.
struct RingPlace {
  RingPlace(const SharedMemory& memory, bool second) noexcept
      : size(memory.size() / 2 - kRingHeader),
        header(memory.data() + (second ? kRingHeader : 0)),
        bytes(memory.data() + 2 * kRingHeader + (second ? size : 0)) {}
  std::size_t size;
  std::byte* header;
  std::byte* bytes;
};

/// Threads: one at a time, where a method says nothing else.
class RingWriter {
 public:
  RingWriter(const std::shared_ptr<const SharedMemory>& memory, bool second)
      : memory_(memory),
        place_(*memory, second),
        words_(place_.header),
        side_(words_, place_.size),
        sleeper_(words_, RingWord::room_bell) {}

  /// Writes from the vectors as far as there is room; returns how many bytes. @param ring  called when the reader's
  /// bell must be rung. Errors: malformed_payload (the reader's counter is wrong).
  template <class Ring>
  Result<std::size_t> write(const iovec* vectors, int count, const Ring& ring) {
    const auto room = side_.room();
    if (!room) return wrong_counter();
    std::size_t total = 0;
    std::size_t copied = 0;  // and not handed over yet
    for (int i = 0; i < count; ++i) {
      const auto* from = static_cast<const std::byte*>(vectors[i].iov_base);
      std::size_t left = std::min<std::size_t>(vectors[i].iov_len, *room - total);
      while (left > 0) {
        const std::size_t part = std::min(left, kPublishAt - copied);
        copy_in(copied, from, part);
        from += part;
        left -= part;
        total += part;
        copied += part;
        if (copied == kPublishAt && side_.publish(std::exchange(copied, 0))) ring();
      }
    }
    if (copied > 0 && side_.publish(copied)) ring();
    return total;
  }

  /// Begins to wait for room; returns false, and does not wait, if there is room. Threads: one at a time, also while
  /// another one writes.
  bool arm() noexcept {
    sleeper_.arm();
    if (!side_.has_room()) return true;
    sleeper_.disarm();
    return false;
  }
  /// Returns whether the reader has answered the sleep that was begun last. Threads: any.
  bool is_rung() noexcept { return sleeper_.is_rung(); }
  /// Returns whether a writer that waits has to look. Threads: any.
  bool has_room() noexcept { return side_.has_room(); }
  /// Shows the reader that this process lives. Threads: one at a time, also while another one writes.
  void beat() noexcept { words_.store(RingWord::beat, ++beats_); }

 private:
  static constexpr std::size_t kPublishAt = 16 * 1024;  // so many bytes, and the reader may begin
  void copy_in(std::size_t ahead, const std::byte* from, std::size_t size) noexcept;
  static Error wrong_counter();

  std::shared_ptr<const SharedMemory> memory_;
  RingPlace place_;
  MappedWords words_;
  WriteSide<MappedWords> side_;
  bell::Sleeper<MappedWords> sleeper_;
  std::uint64_t beats_ = 0;
};

/// Threads: one at a time, where a method says nothing else.
class RingReader {
 public:
  RingReader(const std::shared_ptr<const SharedMemory>& memory, bool second)
      : memory_(memory),
        place_(*memory, second),
        words_(place_.header),
        side_(words_, place_.size),
        sleeper_(words_, RingWord::bytes_bell) {}

  /// Reads into the vectors what is there; returns how many bytes. @param ring  called when the writer's bell must be
  /// rung. Errors: malformed_payload (the writer's counter is wrong).
  template <class Ring>
  Result<std::size_t> read(const iovec* vectors, int count, const Ring& ring) {
    const auto available = side_.available();
    if (!available) return wrong_counter();
    std::size_t total = 0;
    for (int i = 0; i < count; ++i) {
      auto* to = static_cast<std::byte*>(vectors[i].iov_base);
      std::size_t left = std::min<std::size_t>(vectors[i].iov_len, *available - total);
      while (left > 0) {
        const std::size_t part = std::min(left, kPublishAt);
        copy_out(to, part);
        to += part;
        left -= part;
        total += part;
        if (side_.publish(part)) ring();
      }
    }
    return total;
  }

  /// Begins to wait for bytes; returns false, and does not wait, if there are bytes, or if the writer has answered this
  /// sleep already: it may have done so for bytes that were read before, and its bell may be among those that were
  /// taken away. Threads: one at a time. @param take_rings  takes away what was rung for earlier sleeps; called between
  /// the two
  template <class TakeRings>
  bool arm(const TakeRings& take_rings) {
    sleeper_.arm();
    take_rings();
    if (!side_.has_bytes() && !sleeper_.is_rung()) return true;
    sleeper_.disarm();
    return false;
  }
  void disarm() noexcept { sleeper_.disarm(); }
  /// Returns whether the writer has answered the sleep that was begun last. Threads: any.
  bool is_rung() noexcept { return sleeper_.is_rung(); }
  /// Returns whether a reader that waits has to look. Threads: any.
  bool has_bytes() noexcept { return side_.has_bytes(); }
  /// Returns how often the writer has shown that it lives. Threads: any.
  std::uint64_t beats() const noexcept { return words_.load(RingWord::beat); }

 private:
  static constexpr std::size_t kPublishAt = 16 * 1024;  // so many bytes, and their room is given back
  void copy_out(std::byte* to, std::size_t size) noexcept;
  static Error wrong_counter();

  std::shared_ptr<const SharedMemory> memory_;
  RingPlace place_;
  MappedWords words_;
  ReadSide<MappedWords> side_;
  bell::Sleeper<MappedWords> sleeper_;
};

}  // namespace caftan::transport
