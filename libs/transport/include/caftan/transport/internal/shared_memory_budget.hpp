/// `SharedMemoryBudget`: how much memory the rings of a process take. Rule: docs/protocols/shm.md, DP-8.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace caftan::transport {

/// Threads: any. It may end before its shares.
class SharedMemoryBudget {
 public:
  /// A part of the budget, which is given back by the destructor.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept : used_(std::move(other.used_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (used_) used_->fetch_sub(bytes_, std::memory_order_relaxed);
    }

   private:
    friend class SharedMemoryBudget;
    using Used = std::shared_ptr<std::atomic<std::uint64_t>>;
    Share(Used used, std::uint64_t bytes) noexcept : used_(std::move(used)), bytes_(bytes) {}
    Used used_;
    std::uint64_t bytes_ = 0;
  };

  /// Takes `bytes` if all shares together are then at most `most`.
  std::optional<Share> take(std::uint64_t bytes, std::uint64_t most) {
    std::uint64_t used = used_->load(std::memory_order_relaxed);
    do {
      if (bytes > most || used > most - bytes) return std::nullopt;
    } while (!used_->compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return Share(used_, bytes);
  }
  std::uint64_t used() const noexcept { return used_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> used_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace caftan::transport
