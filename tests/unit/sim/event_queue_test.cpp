// The queue of events against a sorted set, in the forms that it has: heap, buckets, a crowded bucket.
#include "caftan/sim/internal/event_queue.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <set>

#include "caftan/sim/internal/payload_store.hpp"

namespace caftan::sim::event_queue_test {
namespace {

struct Before {
  bool operator()(const Event& a, const Event& b) const { return comes_before(a, b); }
};

/// Pushes and pops as `delay` says. Compares each event that is popped with the one of a sorted set.
void compare(std::size_t pending, std::size_t holds, const std::function<std::int64_t(std::mt19937_64&)>& delay) {
  std::mt19937_64 random(pending);
  EventQueue queue;
  std::set<Event, Before> sorted;
  std::uint64_t sequence = 0;
  std::int64_t now = 0;
  const auto push = [&] {
    Event event{.time = now + delay(random), .source = static_cast<std::uint32_t>(random() % 7)};
    event.sequence = sequence++;
    event.priority = random() % 3;
    queue.push(event);
    sorted.insert(event);
  };
  const auto pop = [&] {
    const Event event = queue.top();
    ASSERT_EQ(event.sequence, sorted.begin()->sequence);
    ASSERT_EQ(event.time, sorted.begin()->time);
    now = event.time;
    queue.pop();
    sorted.erase(sorted.begin());
  };
  for (std::size_t i = 0; i < pending; ++i) push();
  for (std::size_t i = 0; i < holds; ++i) {
    pop();
    push();
    ASSERT_EQ(queue.size(), sorted.size());
  }
  ASSERT_EQ(queue.all().size(), sorted.size());
  while (!sorted.empty()) pop();
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, SM1_AHeapOfFewEventsIsInOrder) {
  compare(50, 3000, [](std::mt19937_64& random) { return static_cast<std::int64_t>(random() % 20); });
}

TEST(EventQueue, SM1_BucketsAreInOrder) {
  compare(20'000, 60'000, [](std::mt19937_64& random) { return static_cast<std::int64_t>(random() % 1'000'000'000); });
}

TEST(EventQueue, SM1_ManyEventsAtFewTimesAreInOrder) {
  compare(20'000, 40'000, [](std::mt19937_64& random) { return static_cast<std::int64_t>(random() % 3); });
}

TEST(EventQueue, SM1_CrowdedBucketsAreInOrder) {
  // Most lie within a millionth of the span of the others.
  compare(30'000, 60'000, [](std::mt19937_64& random) {
    return static_cast<std::int64_t>(random() % 10 == 0 ? random() % 1'000'000'000'000 : random() % 1'000'000);
  });
}

TEST(EventQueue, SM1_TimesNearTheEndOfAllTicksAreInOrder) {
  EventQueue queue;
  constexpr std::int64_t kLast = kNever.ticks - 1;
  for (std::int64_t i = 0; i < 5000; ++i) {
    Event event{.time = kLast - i * (kLast / 5000)};
    event.sequence = static_cast<std::uint64_t>(i);
    queue.push(event);
  }
  for (std::uint64_t i = 5000; i-- > 0;) {
    ASSERT_EQ(queue.top().sequence, i);
    queue.pop();
  }
}

TEST(EventQueue, SM1_AKeyIsTimePriorityOfTheEventSourceSequence) {
  const auto made = [](std::int64_t time, unsigned priority, std::uint32_t source, std::uint64_t sequence) {
    Event event{.time = time, .source = source};
    event.priority = priority;
    event.sequence = sequence;
    return event;
  };
  const Event sorted[] = {made(1, 9, 9, 9), made(2, 1, 9, 9), made(2, 2, 1, 9), made(2, 2, 2, 1), made(2, 2, 2, 2)};
  for (std::size_t i = 0; i < std::size(sorted); ++i) {
    for (std::size_t k = 0; k < std::size(sorted); ++k) EXPECT_EQ(comes_before(sorted[i], sorted[k]), i < k);
  }
}

TEST(PayloadStore, KeepsPayloadsOfAllSizes) {
  PayloadStore store;
  std::vector<Event> events;
  const auto bytes_of = [](std::size_t size) {
    wire::Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(size + i);
    return bytes;
  };
  for (int round = 0; round < 3; ++round) {
    for (std::size_t size = 0; size < 300; ++size) {
      events.emplace_back();
      store.put(events.back(), bytes_of(size));
    }
    for (std::size_t size = 0; size < 300; ++size) {
      const wire::ByteView view = PayloadStore::view(events[size]);
      const wire::Bytes wanted = bytes_of(size);
      ASSERT_TRUE(std::equal(view.begin(), view.end(), wanted.begin(), wanted.end())) << size;
    }
    EXPECT_EQ(store.count(), 300 - 9);
    for (std::size_t i = 0; i < 300; ++i) store.release(events[(i * 7) % 300]);
    EXPECT_EQ(store.count(), 0);
    events.clear();
  }
}

}  // namespace
}  // namespace caftan::sim::event_queue_test
