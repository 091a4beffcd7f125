/// The one table of requests in flight of a session: who waits, until when, and which peer may reply. The caller that
/// removes an entry completes the request, so each request completes exactly once. Start with `RequestTable::insert`
/// and `take`. Invariants SE-1 to SE-5: docs/protocols/session.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/ids.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/base/result.hpp"
#include "caftan/net/internal/timer_wheel.hpp"

namespace caftan::net {

/// @tparam Sink  what receives the reply (a promise, a callback, an actor address); moved, never copied, and never
///               called by the table
/// Memory grows by pages of 256 entries and is kept; a request costs no allocation of its own.
/// Threads: any; one mutex, held for O(1) work in `insert`, `take` and `next_deadline`. Sinks are moved under it and
/// destroyed outside it.
template <class Sink>
class RequestTable {
  static_assert(std::is_nothrow_move_constructible_v<Sink>, "a sink that throws while it is moved would be lost");

 public:
  struct Entry {
    CallId id;
    base::TimePoint deadline;
    Sink sink;
  };

  static constexpr std::size_t kMaxEntries = (std::size_t{1} << 24) - 1;

  /// @param start  the time now; @param limit  entries at once, 1 to kMaxEntries; a larger value means kMaxEntries
  explicit RequestTable(base::TimePoint start, std::size_t limit = kMaxEntries)
      : limit_(limit < kMaxEntries ? limit : kMaxEntries), wheel_(start) {}

  RequestTable(const RequestTable&) = delete;
  RequestTable& operator=(const RequestTable&) = delete;

  /// Adds a request and returns its id, which is never zero and is not used again in this table.
  /// @param sink      moved from only if the request was added
  /// @param deadline  when `expire` gives the entry back; kNever = no deadline
  /// Errors: overloaded (the limit is reached), or the reason the table was closed with.
  Result<CallId> insert(Sink&& sink, base::TimePoint deadline) {
    const base::LockGuard lock(mutex_);
    if (closed_) return *closed_;
    if (size_ >= limit_) {
      return Error(Errc::overloaded, std::to_string(limit_) + " requests are in flight to this peer already");
    }
    if (free_ == kNone) free_ = make_slot().index;
    Slot& slot = at(free_);
    // Throws without memory; no request has been added then.
    if (deadline != base::kNever) wheel_.insert(slot, deadline);
    free_ = slot.next_free;
    slot.sink.emplace(std::move(sink));
    slot.deadline = deadline;
    ++size_;
    return id_of(slot);
  }

  /// Removes a request; the caller now owes the reply. Nothing is returned for an id that is unknown, was answered,
  /// expired, or never existed: such a reply is late and is dropped, it is not an error.
  std::optional<Entry> take(CallId id) {
    const base::LockGuard lock(mutex_);
    const std::uint64_t index = id.value & kIndexMask;
    if (index >= made_) return std::nullopt;
    Slot& slot = at(static_cast<std::uint32_t>(index));
    if (!slot.sink || id_of(slot) != id) return std::nullopt;
    return remove(slot);
  }

  /// Removes and returns all requests whose deadline has passed, in order of deadline.
  std::vector<Entry> expire(base::TimePoint now) {
    std::vector<Entry> expired;
    const base::LockGuard lock(mutex_);
    wheel_.advance(now, [&](Timer& timer) {
      mutex_.assert_held();
      expired.push_back(remove(static_cast<Slot&>(timer)));
    });
    return expired;
  }

  /// Removes and returns all requests and closes the table: each later `insert` is refused with `reason`. The first
  /// reason stays.
  std::vector<Entry> take_all(Error reason) {
    std::vector<Entry> entries;
    const base::LockGuard lock(mutex_);
    if (!closed_) closed_ = std::move(reason);
    entries.reserve(size_);
    for (std::uint32_t index = 0; index < made_ && size_ != 0; ++index) {
      if (at(index).sink) entries.push_back(remove(at(index)));
    }
    return entries;
  }

  /// Returns when `expire` must be called next, which may be before the first deadline; kNever without requests.
  base::TimePoint next_deadline() const {
    const base::LockGuard lock(mutex_);
    return wheel_.next_expiry();
  }

  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  static constexpr unsigned kIndexBits = 24;
  static constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kPage = 256;

  struct Slot : Timer {
    std::optional<Sink> sink;
    base::TimePoint deadline = base::kNever;
    std::uint64_t generation = 1;  ///< 40 bits are used: one slot lasts 12 days at a million requests a second
    std::uint32_t index = 0;
    std::uint32_t next_free = kNone;
  };

  static CallId id_of(const Slot& slot) noexcept { return CallId{slot.generation << kIndexBits | slot.index}; }
  Slot& at(std::uint32_t index) noexcept CAFTAN_REQUIRES(mutex_) { return pages_[index / kPage][index % kPage]; }

  Slot& make_slot() CAFTAN_REQUIRES(mutex_) {
    if (made_ % kPage == 0) pages_.push_back(std::make_unique<Slot[]>(kPage));
    Slot& slot = at(made_);
    slot.index = made_++;
    return slot;
  }

  Entry remove(Slot& slot) CAFTAN_REQUIRES(mutex_) {
    wheel_.cancel(slot);
    Entry entry{id_of(slot), slot.deadline, std::move(*slot.sink)};
    slot.sink.reset();
    // An id has only the lower bits of the generation. Where these are zero the generation is skipped: an id of zero
    // means "no request".
    if ((++slot.generation << kIndexBits) == 0) slot.generation = 1;
    slot.next_free = std::exchange(free_, slot.index);
    --size_;
    return entry;
  }

  const std::size_t limit_;
  mutable base::Mutex mutex_;
  TimerWheel wheel_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Slot[]>> pages_ CAFTAN_GUARDED_BY(mutex_);
  /// Slots in use or free.
  std::uint32_t made_ CAFTAN_GUARDED_BY(mutex_) = 0;
  /// Head of the free list. The slot that was freed last is used first, because it is still in the cache.
  std::uint32_t free_ CAFTAN_GUARDED_BY(mutex_) = kNone;
  std::atomic<std::size_t> size_{0};  // written under mutex_
  std::optional<Error> closed_ CAFTAN_GUARDED_BY(mutex_);
};

}  // namespace caftan::net
