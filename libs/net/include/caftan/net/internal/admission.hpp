/// The window of one peer: how many requests, and how many bytes of requests with room for their replies, may be
/// outstanding. A caller that finds the window full is refused or waits, as the caller chooses. Invariants SE-10 to
/// SE-13: docs/protocols/session.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"

namespace caftan::net {

/// Threads: any. Callbacks run without the lock, in the thread that called `release`, `cancel` or `close`; they must
/// not block and must not throw.
class AdmissionWindow {
 public:
  /// Called with success when the waiter's bytes were acquired, or with the error that ended its wait.
  using Waiter = std::function<void(Result<void>)>;
  /// Names a waiter; 0 is none.
  using WaiterId = std::uint64_t;
  /// More bytes of one acquisition count as these; 512 GiB.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 39;
  static constexpr std::uint64_t kMostHolders = (std::uint64_t{1} << 24) - 1;

  /// @param limit  bytes outstanding at once, 1 to kMostBytes; other values become the nearest one
  /// @param most   acquisitions outstanding at once, 1 to kMostHolders; other values become the nearest one
  explicit AdmissionWindow(std::uint64_t limit, std::uint64_t most = kMostHolders)
      : limit_(std::clamp(limit, std::uint64_t{1}, kMostBytes)),
        most_(std::clamp(most, std::uint64_t{1}, kMostHolders)) {}
  /// Ends waiters that are left with shut_down.
  ~AdmissionWindow() { close(Error(Errc::shut_down, "the session has ended")); }
  AdmissionWindow(const AdmissionWindow&) = delete;
  AdmissionWindow& operator=(const AdmissionWindow&) = delete;

  /// Acquires `bytes` (request and room for the reply) if they fit and no caller waits. More than the whole window is
  /// admitted when nothing else is outstanding.
  /// Errors: overloaded, or the reason the window was closed with. Nothing was acquired then.
  Result<void> try_acquire(std::uint64_t bytes);

  /// Acquires `bytes` now and returns 0, or queues `waiter` and returns its id. Waiters are served in order.
  /// Errors: the reason the window was closed with; the waiter is not called then.
  Result<WaiterId> acquire_or_wait(std::uint64_t bytes, Waiter waiter);

  /// Removes a waiter whose deadline has passed, without calling it. Returns false if it waits no longer: then it is
  /// called, or was, and bytes that it acquired have to be released.
  bool cancel(WaiterId id);

  /// Gives back bytes that were acquired and serves waiters that fit now.
  /// Precondition: `bytes` is what one acquisition took.
  void release(std::uint64_t bytes);

  /// Ends all waiting, now and later, with `reason`; the reason of the first call counts. `release` remains valid.
  void close(Error reason);

  std::uint64_t outstanding() const noexcept { return taken_.load().bytes(); }
  std::size_t waiting() const;

 private:
  struct Waiting {
    WaiterId id;
    std::uint64_t bytes;
    Waiter waiter;
  };

  /// What was acquired and not released: the bytes in the lower 40 bits, the number of acquisitions above them; a
  /// request of 0 bytes is one too. At most kMostBytes are admitted beside what is outstanding, so neither part
  /// overflows.
  struct Taken {
    std::uint64_t value = 0;
    static constexpr unsigned kBits = 40;
    static Taken one(std::uint64_t bytes) noexcept {
      return {(std::uint64_t{1} << kBits) + std::min(bytes, kMostBytes)};
    }
    std::uint64_t bytes() const noexcept { return value & ((std::uint64_t{1} << kBits) - 1); }
    std::uint64_t holders() const noexcept { return value >> kBits; }
  };

  bool fits(Taken taken, std::uint64_t bytes) const noexcept;
  bool take(std::uint64_t bytes) noexcept;
  Result<void> why_not(std::uint64_t bytes) const CAFTAN_REQUIRES(mutex_);
  std::vector<Waiter> admit_waiters() CAFTAN_REQUIRES(mutex_);

  const std::uint64_t limit_;
  const std::uint64_t most_;
  std::atomic<Taken> taken_{};
  /// Whether callers wait or the window is closed: without either, nothing needs the lock. Written under mutex_, and
  /// before a caller that is to wait looks at taken_ for the last time.
  std::atomic<bool> needs_lock_{false};
  mutable base::Mutex mutex_;
  std::deque<Waiting> waiting_ CAFTAN_GUARDED_BY(mutex_);
  WaiterId last_id_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::optional<Error> closed_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::net
