#include "caftan/sim/internal/event_queue.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <new>
#include <utility>

#include "caftan/sim/internal/large_memory.hpp"

namespace caftan::sim {

void EventHeap::push(const Event& event) {
  events_.push_back(event);
  sift_up(events_.size() - 1, event);
}

void EventHeap::pop() noexcept {
  const Event last = events_.back();
  events_.pop_back();
  const std::size_t size = events_.size();
  if (size == 0) return;
  // The hole goes down along the least children to the bottom, then `last` up from there: it mostly belongs there.
  std::size_t hole = 0;
  std::size_t child = 1;
  for (; child + 4 <= size; child = 4 * hole + 1) {
    // A tournament whose results are sums, as a processor cannot predict them.
    const std::size_t left = child + std::size_t{comes_before(events_[child + 1], events_[child])};
    const std::size_t right = child + 2 + std::size_t{comes_before(events_[child + 3], events_[child + 2])};
    const std::size_t least = comes_before(events_[right], events_[left]) ? right : left;
    events_[hole] = events_[least];
    hole = least;
  }
  if (child < size) {
    std::size_t least = child;
    while (++child < size) {
      if (comes_before(events_[child], events_[least])) least = child;
    }
    events_[hole] = events_[least];
    hole = least;
  }
  sift_up(hole, last);
}

void EventHeap::sift_up(std::size_t hole, const Event& event) noexcept {
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 4;
    if (!comes_before(event, events_[parent])) break;
    events_[hole] = events_[parent];
    hole = parent;
  }
  events_[hole] = event;
}

struct EventBag::Chunk {
  static constexpr std::size_t kEvents = 31;
  Chunk* before;
  std::size_t count;
  std::array<Event, kEvents> events;
};

class EventBag::Pool {
 public:
  Chunk* take() {
    if (!free_) grow();
    return std::exchange(free_, free_->before);
  }
  void give(Chunk* chunk) noexcept {
    chunk->before = free_;
    free_ = chunk;
  }

 private:
  static constexpr std::size_t kFirst = 64;  // chunks of the first allocation
  static constexpr std::size_t kMost = LargeMemory::kHugePage / sizeof(Chunk);

  void grow() {
    const std::size_t count = slabs_.empty() ? kFirst : kMost;
    slabs_.emplace_back(count == kMost ? LargeMemory::kHugePage : count * sizeof(Chunk), alignof(Chunk));
    auto* const chunks = reinterpret_cast<Chunk*>(slabs_.back().data());
    for (std::size_t i = 0; i < count; ++i) give(new (chunks + i) Chunk);
  }

  std::vector<LargeMemory> slabs_;
  Chunk* free_ = nullptr;
};

void EventBag::push(const Event& event, Pool& pool) {
  if (!last_ || last_->count == Chunk::kEvents) {
    Chunk* const chunk = pool.take();
    chunk->before = last_;
    chunk->count = 0;
    last_ = chunk;
  }
  last_->events[last_->count++] = event;
  ++size_;
}

void EventBag::move_to(std::vector<Event>& to, Pool& pool) {
  to.reserve(to.size() + size_);
  while (last_) {
    to.insert(to.end(), last_->events.begin(), last_->events.begin() + static_cast<std::ptrdiff_t>(last_->count));
    pool.give(std::exchange(last_, last_->before));
  }
  size_ = 0;
}

template <class F>
void EventBag::each(F&& visit) const {
  for (const Chunk* chunk = last_; chunk; chunk = chunk->before) {
    for (std::size_t i = 0; i < chunk->count; ++i) visit(chunk->events[i]);
  }
}

BucketRow::BucketRow(std::int64_t first, unsigned width_bits, std::size_t count)
    : bags_(count), first_(first), width_bits_(width_bits) {
  end_ = moment(count);
}

std::int64_t BucketRow::moment(std::size_t bucket) const noexcept {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  const auto left = static_cast<std::uint64_t>(kLast - first_);
  return bucket > (left >> width_bits_) ? kLast : first_ + static_cast<std::int64_t>(bucket << width_bits_);
}

void BucketRow::open_next(std::vector<Event>& to, EventBag::Pool& pool) {
  while (bags_[open_].empty()) ++open_;
  size_ -= bags_[open_].size();
  bags_[open_].move_to(to, pool);
  ++open_;
}

template <class F>
void BucketRow::each(F&& visit) const {
  for (const EventBag& bag : bags_) bag.each(visit);
}

EventQueue::EventQueue() : pool_(std::make_unique<EventBag::Pool>()) {}
EventQueue::~EventQueue() = default;

void EventQueue::push(const Event& event) {
  ++size_;
  if (is_heap_) {
    late_.push(event);
    if (late_.size() > kHeap) {
      std::vector<Event> events = late_.take();
      make_buckets(events);
    }
  } else if (event.time < open_end_) {
    late_.push(event);
  } else if (event.time < fine_.end()) {
    fine_.push(event, *pool_);
  } else if (event.time < coarse_.end()) {
    coarse_.push(event, *pool_);
  } else {
    overflow_.push(event, *pool_);
  }
}

/// Makes the sorted run the next events; called when it is empty. Late events that are left lie before the next bucket.
void EventQueue::open() {
  if (!late_.empty() || size_ == 0) return;
  run_.clear();
  at_ = 0;
  if (fine_.empty() && coarse_.empty()) {
    std::vector<Event> events;
    overflow_.move_to(events, *pool_);
    if (events.size() <= kHeap / 2) {
      is_heap_ = true;
      fine_ = coarse_ = BucketRow();
      for (const Event& event : events) late_.push(event);
      return;
    }
    make_buckets(events);
  }
  if (fine_.empty()) {
    coarse_.open_next(run_, *pool_);
    open_end_ = coarse_.open_end();
    fine_ = BucketRow();
    if (run_.size() > kCrowded) spread();
  }
  if (!fine_.empty()) {
    fine_.open_next(run_, *pool_);
    open_end_ = fine_.open_end();
  }
  std::sort(run_.begin(), run_.end(), comes_before);
}

/// Distributes all pending events anew: `events` are all of them.
void EventQueue::make_buckets(std::vector<Event>& events) {
  is_heap_ = false;
  std::int64_t first = events.front().time;
  for (const Event& event : events) first = std::min(first, event.time);
  // The span of the earlier three quarters, from a sample: few events that lie far ahead must not widen all buckets.
  constexpr std::size_t kSample = 256;
  std::vector<std::int64_t> sample;
  for (std::size_t i = 0; i < kSample; ++i) sample.push_back(events[i * events.size() / kSample].time);
  std::nth_element(sample.begin(), sample.begin() + kSample * 3 / 4, sample.end());
  const std::size_t buckets = std::clamp<std::size_t>(events.size() / kPerBucket, 1, kBuckets);
  const auto span = static_cast<std::uint64_t>(sample[kSample * 3 / 4] - first);
  const std::uint64_t width = std::max<std::uint64_t>(span / std::max<std::size_t>(buckets * 3 / 4, 1), 1);
  coarse_ = BucketRow(first, static_cast<unsigned>(std::bit_width(width) - 1), kBuckets);
  fine_ = BucketRow();
  open_end_ = first;
  run_.clear();
  at_ = 0;
  for (const Event& event : events) {
    if (event.time < coarse_.end()) {
      coarse_.push(event, *pool_);
    } else {
      overflow_.push(event, *pool_);
    }
  }
}

/// Distributes the crowded bucket that was just opened to a row of its own, unless its width is one tick already.
void EventQueue::spread() {
  constexpr unsigned kSpreadBits = std::bit_width(kSpread) - 1;
  const unsigned bits = coarse_.width_bits();
  if (bits == 0) return;
  const std::int64_t first = (open_end_ == std::numeric_limits<std::int64_t>::max()
                                  ? std::min_element(run_.begin(), run_.end(), comes_before)->time
                                  : open_end_ - (std::int64_t{1} << bits));
  const unsigned fine_bits = bits > kSpreadBits ? bits - kSpreadBits : 0;
  fine_ = BucketRow(first, fine_bits, std::size_t{1} << (bits - fine_bits));
  for (const Event& event : run_) fine_.push(event, *pool_);
  run_.clear();
}

std::vector<Event> EventQueue::all() const {
  std::vector<Event> events(late_.all());
  events.insert(events.end(), run_.begin() + static_cast<std::ptrdiff_t>(at_), run_.end());
  const auto add = [&](const Event& event) { events.push_back(event); };
  fine_.each(add);
  coarse_.each(add);
  overflow_.each(add);
  return events;
}

}  // namespace caftan::sim
