#include "caftan/net/internal/request_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace caftan::net::request_table_test {
namespace {

using namespace std::chrono_literals;

const base::TimePoint kStart = base::ManualClock().now();
using Table = RequestTable<std::unique_ptr<int>>;

std::unique_ptr<int> make_sink(int number) { return std::make_unique<int>(number); }

TEST(RequestTable, SE1_AnEntryIsGivenOutOnce) {
  Table table(kStart);
  const auto id = table.insert(make_sink(7), kStart + 1s);
  ASSERT_TRUE(id);
  const auto entry = table.take(*id);
  ASSERT_TRUE(entry);
  EXPECT_EQ(*entry->sink, 7);
  EXPECT_EQ(entry->id, *id);
  EXPECT_EQ(entry->deadline, kStart + 1s);
  EXPECT_FALSE(table.take(*id));
  EXPECT_TRUE(table.expire(kStart + 2s).empty());
  EXPECT_TRUE(table.take_all(Error(Errc::peer_down, "")).empty());
}

TEST(RequestTable, SE2_AnIdIsNeverZeroAndAReusedSlotHasANewOne) {
  Table table(kStart);
  std::set<CallId> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto id = table.insert(make_sink(i), base::kNever);
    ASSERT_TRUE(id);
    EXPECT_NE(id->value, 0U);
    EXPECT_TRUE(seen.insert(*id).second);
    ASSERT_TRUE(table.take(*id));
  }
}

TEST(RequestTable, SE2_IdsThatWereNeverMadeFindNothing) {
  Table table(kStart);
  ASSERT_TRUE(table.insert(make_sink(1), base::kNever));
  for (const std::uint64_t id : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 24,
                                 (std::uint64_t{1} << 24) + 5, (std::uint64_t{2} << 24)}) {
    EXPECT_EQ(table.take(CallId{id}).has_value(), id == std::uint64_t{1} << 24) << id;
  }
}

TEST(RequestTable, SE2_M_EachBitOfAnIdCounts) {
  Table table(kStart);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(table.insert(make_sink(i), base::kNever));
  const CallId first{std::uint64_t{1} << 24};
  ASSERT_TRUE(table.take(first));
  // Takes the slot of the first request, in the slot's second generation.
  const auto reused = table.insert(make_sink(3), base::kNever);
  ASSERT_TRUE(reused);
  ASSERT_EQ(reused->value, std::uint64_t{2} << 24);
  EXPECT_FALSE(table.take(first)) << "an answer to the slot's former request";
  for (unsigned bit = 24; bit < 64; ++bit) {
    EXPECT_FALSE(table.take(CallId{reused->value ^ (std::uint64_t{1} << bit)})) << "bit " << bit;
  }
  EXPECT_TRUE(table.take(*reused));
}

TEST(RequestTable, SE3_DeadlinesExpireInOrderAndNoneMeansNone) {
  Table table(kStart);
  ASSERT_TRUE(table.insert(make_sink(0), base::kNever));
  ASSERT_TRUE(table.insert(make_sink(2), kStart + 60s));
  ASSERT_TRUE(table.insert(make_sink(1), kStart + 1s));
  EXPECT_LE(table.next_deadline(), kStart + 1s);
  EXPECT_TRUE(table.expire(kStart + 999ms).empty());
  const auto expired = table.expire(kStart + 61s);
  ASSERT_EQ(expired.size(), 2U);
  EXPECT_EQ(*expired[0].sink, 1);
  EXPECT_EQ(*expired[1].sink, 2);
  EXPECT_EQ(table.next_deadline(), base::kNever);
  EXPECT_EQ(table.size(), 1U);
}

TEST(RequestTable, SE4_AClosedTableGivesAllBackAndRefusesWithItsReason) {
  Table table(kStart);
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(table.insert(make_sink(i), kStart + 1s));
  EXPECT_EQ(table.take_all(Error(Errc::peer_down, "worker1 is gone")).size(), 600U);
  auto sink = make_sink(9);
  const auto refused = table.insert(std::move(sink), base::kNever);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::peer_down);
  EXPECT_TRUE(sink) << "a refused request keeps its sink: the caller completes it";
  EXPECT_TRUE(table.take_all(Error(Errc::shut_down, "")).empty());
  EXPECT_EQ(table.insert(std::move(sink), base::kNever).error().text(), "worker1 is gone");
}

TEST(RequestTable, SE5_TheLimitRefusesWithoutTakingTheSink) {
  Table table(kStart, 2);
  const auto first = table.insert(make_sink(0), base::kNever);
  ASSERT_TRUE(first);
  ASSERT_TRUE(table.insert(make_sink(1), base::kNever));
  auto sink = make_sink(2);
  EXPECT_EQ(table.insert(std::move(sink), base::kNever).error().code(), Errc::overloaded);
  ASSERT_TRUE(sink);
  ASSERT_TRUE(table.take(*first));
  EXPECT_TRUE(table.insert(std::move(sink), base::kNever));
}

TEST(RequestTable, SE1_SE3_BehavesAsAMapThroughRandomOperations) {
  std::mt19937_64 random(11);
  Table table(kStart);
  std::map<CallId, std::pair<base::TimePoint, int>> model;
  std::vector<CallId> ids;
  base::TimePoint now = kStart;
  for (int step = 0; step < 20000; ++step) {
    switch (random() % 8) {
      case 0: {
        now += base::Duration(static_cast<base::Duration::rep>(random() % 50) * 1'000'000);
        for (const auto& entry : table.expire(now)) {
          const auto found = model.find(entry.id);
          ASSERT_NE(found, model.end());
          ASSERT_LE(found->second.first, now);
          ASSERT_EQ(found->second.second, *entry.sink);
          model.erase(found);
        }
        for (const auto& [id, request] : model) ASSERT_GT(request.first, now);
        break;
      }
      case 1:
      case 2:
      case 3: {
        const base::TimePoint deadline =
            random() % 4 == 0 ? base::kNever
                              : now + base::Duration(static_cast<base::Duration::rep>(1 + random() % 3000) * 1'000'000);
        const auto id = table.insert(make_sink(step), deadline);
        ASSERT_TRUE(id);
        ASSERT_TRUE(model.emplace(*id, std::pair(deadline, step)).second);
        ids.push_back(*id);
        break;
      }
      default:
        if (ids.empty()) break;
        const CallId id = ids[random() % ids.size()];
        ASSERT_EQ(table.take(id).has_value(), model.erase(id) == 1);
    }
    ASSERT_EQ(table.size(), model.size());
  }
}

TEST(RequestTable, SE1_EachRequestEndsOnceWhenThreadsRace) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 5000;
  RequestTable<int> table(kStart);
  std::vector<std::atomic<int>> ends(kThreads * kRequests);
  std::atomic<int> refused{0};
  const auto end = [&](int sink) { ++ends[static_cast<std::size_t>(sink)]; };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        int sink = t * kRequests + i;
        const auto id = table.insert(std::move(sink), kStart + std::chrono::milliseconds(i % 50));
        if (!id) {
          ++refused;
          end(t * kRequests + i);
        } else if (i % 3 != 0) {
          if (auto entry = table.take(*id)) end(entry->sink);
        } else if (i % 99 == 0) {
          for (const auto& entry : table.expire(kStart + std::chrono::milliseconds(i / 100))) end(entry.sink);
        }
        if (t == 0 && i == kRequests * 9 / 10) {
          for (const auto& entry : table.take_all(Error(Errc::peer_down, ""))) end(entry.sink);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(refused, 0);
  for (const auto& count : ends) ASSERT_EQ(count, 1);
  EXPECT_EQ(table.size(), 0U);
}

}  // namespace
}  // namespace caftan::net::request_table_test
