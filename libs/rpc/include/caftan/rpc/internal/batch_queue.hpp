/// `BatchQueue`: decides when a batched function runs and which requests one run answers. It has no clock and no timer:
/// each event brings the time, and the caller does what `Next` says. Rules BT-1 to BT-3, BT-13:
/// docs/protocols/batching.md.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/rpc/batch.hpp"

namespace caftan::rpc {

/// What the caller of a BatchQueue does after an event.
struct BatchNext {
  bool run = false;  ///< start one run, which calls `begin` once it has a thread and the object's turn
  std::optional<base::TimePoint> wake_at{};  ///< when to call `on_timer`; no other timer is set until then
};

/// Requests of one function of one object. Threads: one at a time.
template <class Item>
class BatchQueue {
 public:
  explicit BatchQueue(BatchLimits limits) : limits_(limits) {}

  /// A request has come. @param now  not before that of an earlier event
  BatchNext join(Item item, base::TimePoint now) {
    waiting_.push_back({std::move(item), now + limits_.max_wait});
    return look(now);
  }
  /// The timer has gone off.
  BatchNext on_timer(base::TimePoint now) {
    has_timer_ = false;
    return look(now);
  }
  /// The worker leaves: from now on requests do not wait for others.
  BatchNext close(base::TimePoint now) {
    closed_ = true;
    return look(now);
  }
  /// Runs that are started from now on have this size. Then call `look` until it starts no run.
  void set_max_size(std::size_t size) noexcept { limits_.max_size = size; }
  /// Looks at what waits, after `set_max_size`.
  BatchNext look(base::TimePoint now) {
    BatchNext next;
    if (waiting_.size() <= taken_) return next;
    const base::TimePoint due = waiting_[taken_].due;
    if (waiting_.size() - taken_ >= limits_.max_size || now >= due || closed_) {
      started_.push_back(limits_.max_size);
      taken_ += limits_.max_size;
      next.run = true;
    } else if (!has_timer_) {
      has_timer_ = true;
      next.wake_at = due;
    }
    return next;
  }
  /// A run begins. Returns the requests that it answers, in the order in which they came: as many as max_size was when
  /// it was started at most, those among them that came since. Precondition: a run was started for which this was not
  /// called yet.
  std::vector<Item> begin() {
    const std::size_t size = std::min(waiting_.size(), started_.front());
    taken_ -= started_.front();
    started_.pop_front();
    std::vector<Item> batch;
    batch.reserve(size);
    for (; batch.size() < size; waiting_.pop_front()) batch.push_back(std::move(waiting_.front().item));
    return batch;
  }

  /// Returns the oldest request that waits, null when none does.
  const Item* first() const noexcept { return waiting_.empty() ? nullptr : &waiting_.front().item; }
  /// Returns whether no request waits, no run was started that has not begun, and no timer will go off.
  bool is_idle() const noexcept { return waiting_.empty() && started_.empty() && !has_timer_; }

 private:
  struct Waiting {
    Item item;
    base::TimePoint due;  // when the request has waited long enough for others
  };

  BatchLimits limits_;
  std::deque<Waiting> waiting_;
  std::deque<std::size_t> started_;  // the sizes of runs that have not begun
  std::size_t taken_ = 0;            // their sum: so many requests go to them
  bool has_timer_ = false;
  bool closed_ = false;
};

}  // namespace caftan::rpc
