/// Which calls of a peer may begin: while too much is waiting to be written to it, those that have not begun are held
/// back, because what has not begun needs no memory for its answer. Answers themselves always leave. SE-35 to SE-37:
/// docs/protocols/session.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "caftan/base/task.hpp"

namespace caftan::net {

/// Threads: any, except where it says otherwise.
class ServeGate {
 public:
  /// Where a call stands that was held back; keep one for each call.
  struct Place {
    std::uint64_t number = 0;  ///< 0: it never was
  };
  using Tasks = std::vector<Task>;

  /// @param limit  bytes waiting to be written, above which no call begins until half of them are left
  explicit ServeGate(std::uint64_t limit) : limit_(limit) {}

  /// Returns false while every call may begin. One load.
  bool is_busy() const noexcept { return busy_.load(std::memory_order_acquire); }

  /// Asks for a call that is about to begin. Returns false if it has to wait: `again`, which makes the task that asks
  /// once more, was called, and the task comes out of on_backlog or of this method for another call.
  /// @param order  calls with the same one, not null, begin in the order in which they asked first: methods of an
  /// object
  /// @param ready  gets tasks that may run now, for an executor
  bool pass(Place& place, const void* order, const std::function<Task()>& again, Tasks& ready);

  /// Returns whether on_backlog would change anything. Threads: as on_backlog.
  bool concerns(std::uint64_t backlog) const noexcept { return open_ ? backlog > limit_ : backlog <= limit_ / 2; }
  /// Tells how many bytes wait to be written; returns tasks that may run now, in order. Threads: one at a time.
  Tasks on_backlog(std::uint64_t backlog);

  /// The peer is gone: returns what was held back, to be dropped. Nothing is held back any more.
  Tasks close();

 private:
  void update_busy() noexcept { busy_.store(!open_ || !held_.empty(), std::memory_order_release); }

  const std::uint64_t limit_;
  std::atomic<bool> busy_{false};
  std::mutex mutex_;
  // Written under mutex_; open_ is also read by the thread of on_backlog, which alone changes it.
  bool open_ = true;
  bool closed_ = false;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Task> held_;  ///< by place; an empty task was handed out and has not asked again yet
  std::unordered_map<const void*, std::deque<std::uint64_t>> by_order_;
};

}  // namespace caftan::net
