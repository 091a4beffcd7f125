/// `EndingForks`: counts the forks that user code has released and whose actors have not ended yet. So a worker can
/// wait for their end, and creations cannot fill the memory with them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/rpc/future.hpp"
#include "service/member_ports.hpp"

namespace caftan::actors {

/// Threads: any, all methods.
class EndingForks {
 public:
  explicit EndingForks(MemberPorts& ports) : ports_(ports) {}

  /// A creation is about to be sent: its fork cannot end before `creation_answered`.
  void creation_begins() noexcept { creating_.fetch_add(1, std::memory_order_relaxed); }
  void creation_answered() noexcept { creating_.fetch_sub(1, std::memory_order_relaxed); }
  /// The last handle of a fork is gone; the fork's actor has not ended.
  void let_go() noexcept { let_go_.fetch_add(1); }
  /// The actor of a fork for which `let_go` was called has ended.
  void ended();

  /// Calls `done` once every released fork has ended; at once if that is so already. An empty `done` withdraws the last
  /// one.
  void when_quiet(std::function<void()> done);
  /// Waits, where waiting is permitted, while too many released references of answered creations have not ended: their
  /// ends are work for runners, and creations may be quicker.
  /// Errors: timeout (`deadline` came first).
  Result<void> wait_until_few(base::TimePoint deadline);

 private:
  void notify();
  std::int64_t ending() const noexcept { return let_go_ - creating_; }

  MemberPorts& ports_;
  std::atomic<std::int64_t> let_go_{0};    // forks whose last handle is gone and whose actor has not ended
  std::atomic<std::int64_t> creating_{0};  // creations without a reply yet: their forks cannot end before the reply
  base::Mutex mutex_;
  std::function<void()> quiet_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<Promise<void>> waiting_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::actors
