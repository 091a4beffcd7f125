/// `EventQueue`: pending events in the order of their keys. Up to 2,048 of them are one 4-ary heap. Above, they lie
/// unsorted in buckets of equal width; the bucket with the least times is opened, which sorts it, and events that
/// arrive for the open bucket go into the heap. So most pushes touch one place of memory, and what comes next is known
/// ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/sim/internal/event.hpp"

namespace caftan::sim {

/// A heap of events with four children per node. Threads: one at a time.
class EventHeap {
 public:
  bool empty() const noexcept { return events_.empty(); }
  std::size_t size() const noexcept { return events_.size(); }
  /// Returns the least event. Precondition: not empty.
  const Event& top() const noexcept { return events_.front(); }
  /// Adds an event.
  void push(const Event& event);
  /// Removes the least event. Precondition: not empty.
  void pop() noexcept;
  /// Removes all events and returns them in any order.
  std::vector<Event> take() noexcept { return std::exchange(events_, {}); }
  /// Returns all events in any order.
  const std::vector<Event>& all() const noexcept { return events_; }

 private:
  /// Puts an event where it belongs on the way from a hole to the top.
  void sift_up(std::size_t hole, const Event& event) noexcept;

  std::vector<Event> events_;
};

/// Unsorted events in chunks of a common pool.
class EventBag {
 public:
  /// Chunks that bags share; gives back none before its end.
  class Pool;
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  /// Adds an event.
  void push(const Event& event, Pool& pool);
  /// Appends all events to `to`, in the order of their pushes from the last chunk to the first, and empties the bag.
  void move_to(std::vector<Event>& to, Pool& pool);
  /// Calls `visit` with each event.
  template <class F>
  void each(F&& visit) const;

 private:
  struct Chunk;
  Chunk* last_ = nullptr;
  std::size_t size_ = 0;
};

/// Buckets of equal width, a power of two ticks, from a first moment on.
class BucketRow {
 public:
  BucketRow() = default;
  /// @param width_bits  a bucket covers 2^width_bits ticks
  BucketRow(std::int64_t first, unsigned width_bits, std::size_t count);
  /// Returns the first moment behind the last bucket, at most 2^63 - 1.
  std::int64_t end() const noexcept { return end_; }
  /// Returns the first moment behind the bucket that was opened last.
  std::int64_t open_end() const noexcept { return moment(open_); }
  unsigned width_bits() const noexcept { return width_bits_; }
  /// Adds an event. Precondition: open_end() <= its time < end().
  void push(const Event& event, EventBag::Pool& pool) {
    bags_[static_cast<std::size_t>((static_cast<std::uint64_t>(event.time) - static_cast<std::uint64_t>(first_)) >>
                                   width_bits_)]
        .push(event, pool);
    ++size_;
  }
  bool empty() const noexcept { return size_ == 0; }
  /// Moves the next bucket with events to `to`, which then counts as open. Precondition: not empty.
  void open_next(std::vector<Event>& to, EventBag::Pool& pool);
  /// Calls `visit` with each event.
  template <class F>
  void each(F&& visit) const;

 private:
  std::int64_t moment(std::size_t bucket) const noexcept;

  std::vector<EventBag> bags_{};
  std::int64_t first_ = 0;
  std::int64_t end_ = 0;
  unsigned width_bits_ = 0;
  std::size_t open_ = 0;  // buckets before this one were opened
  std::size_t size_ = 0;
};

/// Threads: one at a time.
class EventQueue {
 public:
  EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue();

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  /// Adds an event. Precondition: its time is not negative and below 2^63 - 1.
  void push(const Event& event);
  /// Returns the event with the least key. Precondition: not empty.
  const Event& top() {
    if (at_ == run_.size() && !is_heap_) open();
    if (at_ < run_.size() && (late_.empty() || comes_before(run_[at_], late_.top()))) return run_[at_];
    return late_.top();
  }
  /// Removes the event with the least key. Precondition: not empty.
  void pop() {
    if (at_ == run_.size() && !is_heap_) open();
    --size_;
    if (at_ < run_.size() && (late_.empty() || comes_before(run_[at_], late_.top()))) {
      ++at_;
    } else {
      late_.pop();
    }
  }
  /// Returns an event that will probably be the `n`-th after the next one; null where that is not known.
  const Event* ahead(std::size_t n) const noexcept { return at_ + n < run_.size() ? &run_[at_ + n] : nullptr; }
  /// Returns all events in any order.
  std::vector<Event> all() const;

 private:
  static constexpr std::size_t kHeap = 2048;      // pending events that one heap holds
  static constexpr std::size_t kBuckets = 4096;   // in the first row
  static constexpr std::size_t kSpread = 256;     // in the second row
  static constexpr std::size_t kPerBucket = 128;  // events that a bucket is made for
  static constexpr std::size_t kCrowded = 4096;   // events of a bucket that is spread once more

  void open();
  void make_buckets(std::vector<Event>& events);
  void spread();

  bool is_heap_ = true;  // all events are in late_
  EventHeap late_;
  std::vector<Event> run_;  // the open bucket, sorted
  std::size_t at_ = 0;      // events of run_ before this one were popped
  BucketRow fine_;          // what one crowded bucket of coarse_ was spread to
  BucketRow coarse_;
  EventBag overflow_;  // behind coarse_
  std::unique_ptr<EventBag::Pool> pool_;
  std::int64_t open_end_ = 0;  // events before this moment are in run_ or late_
  std::size_t size_ = 0;
};

}  // namespace caftan::sim
