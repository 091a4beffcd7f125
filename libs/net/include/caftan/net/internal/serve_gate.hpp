/// Decides which calls of a peer may begin. While too many bytes wait to be written to the peer, calls that have not
/// begun are held back, because such a call has no reply in memory yet. Replies are never held back. SE-35 to SE-37:
/// docs/protocols/session.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "caftan/base/task.hpp"

namespace caftan::net {

/// Threads: any, except where a member says otherwise.
class ServeGate {
 public:
  /// The place of a call in the queue of calls held back. The caller of `pass` keeps one for each call.
  struct Place {
    std::uint64_t number = 0;  ///< 0: the call was never held back
  };
  using Tasks = std::vector<base::Task>;

  /// @param limit  bytes: once more than `limit` wait to be written, no call begins until at most `limit` / 2 wait
  explicit ServeGate(std::uint64_t limit) : limit_(limit) {}

  /// Returns false while every call may begin without asking `pass`. Costs one atomic load.
  bool is_busy() const noexcept { return busy_.load(std::memory_order_acquire); }

  /// Asks whether a call may begin now. If this returns false, the call has to wait, and `again` was called to make
  /// the task that asks once more. A later on_backlog, or a later `pass` of another call, returns that task.
  /// @param order  if not null: calls with the same `order` begin in the order in which they first asked (methods of
  /// one object)
  /// @param ready  receives tasks of other calls that may ask again now; the caller posts them to an executor
  bool pass(Place& place, const void* order, const std::function<base::Task()>& again, Tasks& ready);

  /// Returns whether on_backlog would open or close the gate. Threads: as on_backlog.
  bool concerns(std::uint64_t backlog) const noexcept { return open_ ? backlog > limit_ : backlog <= limit_ / 2; }
  /// Takes the number of unwritten bytes; returns tasks that may run now, in order. Threads: one at a time.
  Tasks on_backlog(std::uint64_t backlog);

  /// Call when the session has ended. Returns the held tasks, to be dropped; from then on no call is held back.
  Tasks close();

 private:
  void update_busy() noexcept CAFTAN_REQUIRES(mutex_) {
    busy_.store(!open_ || !held_.empty(), std::memory_order_release);
  }

  const std::uint64_t limit_;
  std::atomic<bool> busy_{false};
  base::Mutex mutex_;
  /// Changed under mutex_ by on_backlog alone; the thread of on_backlog also reads it without the lock.
  bool open_ = true;
  bool closed_ CAFTAN_GUARDED_BY(mutex_) = false;
  std::uint64_t last_ CAFTAN_GUARDED_BY(mutex_) = 0;
  /// The tasks of held calls, by place. An empty task means that the task was handed out and that its call has not
  /// asked again yet.
  std::map<std::uint64_t, base::Task> held_ CAFTAN_GUARDED_BY(mutex_);
  std::unordered_map<const void*, std::deque<std::uint64_t>> by_order_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::net
