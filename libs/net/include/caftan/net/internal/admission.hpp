/// The window of one peer: how many requests, and how many bytes of requests with room for their replies, may be
/// outstanding. A caller that finds the window full is refused or waits, as the caller chooses. Invariants SE-10 to
/// SE-13: docs/protocols/session.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
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

  /// @param limit  bytes outstanding at once, >= 1
  /// @param most   acquisitions outstanding at once, >= 1
  explicit AdmissionWindow(std::uint64_t limit, std::uint64_t most = std::numeric_limits<std::uint64_t>::max())
      : limit_(limit == 0 ? 1 : limit), most_(most == 0 ? 1 : most) {}
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

  std::uint64_t outstanding() const;
  std::size_t waiting() const;

 private:
  struct Waiting {
    WaiterId id;
    std::uint64_t bytes;
    Waiter waiter;
  };

  bool fits(std::uint64_t bytes) const noexcept CAFTAN_REQUIRES(mutex_);
  std::vector<Waiter> admit_waiters() CAFTAN_REQUIRES(mutex_);

  const std::uint64_t limit_;
  const std::uint64_t most_;
  mutable base::Mutex mutex_;
  std::uint64_t outstanding_ CAFTAN_GUARDED_BY(mutex_) = 0;
  /// Acquisitions not released; a request of 0 bytes is one too.
  std::uint64_t holders_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::deque<Waiting> waiting_ CAFTAN_GUARDED_BY(mutex_);
  WaiterId last_id_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::optional<Error> closed_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::net
