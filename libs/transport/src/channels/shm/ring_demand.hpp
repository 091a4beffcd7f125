/// `RingDemand`: whether a session carries enough to be worth the memory of two rings. Rule: docs/protocols/shm.md,
/// "Set-up".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "caftan/base/clock.hpp"

namespace caftan::transport {

class RingDemand {
 public:
  /// @param frames  so many reads and writes within 10 s are enough
  RingDemand(std::uint32_t frames, base::TimePoint now) : frames_(frames), since_(now) {}

  /// Notes a read or a write of the socket. Threads: any.
  void note(std::size_t bytes) noexcept {
    seen_.fetch_add(1, std::memory_order_relaxed);
    if (bytes >= kBulk) bulk_.store(true, std::memory_order_relaxed);
  }
  /// Returns whether there is to be a ring; asks for the time only if it matters. Threads: one at a time.
  bool wants(const base::Clock& clock) noexcept {
    if (bulk_.load(std::memory_order_relaxed)) return true;
    if (seen_.load(std::memory_order_relaxed) < frames_) return false;
    const base::TimePoint now = clock.now();
    if (now - since_ <= kWithin) return true;
    since_ = now;
    seen_.store(0, std::memory_order_relaxed);
    return false;
  }

 private:
  static constexpr base::Duration kWithin = std::chrono::seconds(10);
  static constexpr std::size_t kBulk = 64 * 1024;  // one read or write of so many bytes is enough

  const std::uint32_t frames_;
  base::TimePoint since_;
  std::atomic<std::uint32_t> seen_{0};
  std::atomic<bool> bulk_{false};
};

}  // namespace caftan::transport
