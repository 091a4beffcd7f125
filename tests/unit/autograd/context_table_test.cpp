// Which contexts of a worker are open, and which are refused for ever.
#include "caftan/autograd/internal/context_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "pass_events.hpp"

namespace caftan::autograd::context_table_test {
namespace {

ContextId context(std::uint64_t number) { return {kHome.id, kHome.incarnation, number}; }

Errc entering(ContextTable& table, std::uint64_t number) {
  const Result<bool> entered = table.enter(context(number));
  return entered ? Errc::ok : entered.error().code();
}

TEST(ContextTable, OnesOwnContextIsOpenUntilItsRelease) {
  ContextTable table(kHome);
  EXPECT_EQ(table.create(), context(1));
  EXPECT_FALSE(*table.enter(context(1)));
  EXPECT_EQ(entering(table, 2), Errc::unknown_context);
  EXPECT_EQ(entering(table, 0), Errc::unknown_context);
  table.released(context(1));
  EXPECT_EQ(entering(table, 1), Errc::context_released);
}

TEST(ContextTable, AnothersContextIsNewOnce) {
  ContextTable table(kA);
  EXPECT_TRUE(*table.enter(context(7)));
  EXPECT_FALSE(*table.enter(context(7)));
}

TEST(ContextTable, DA13_ReleasesThatOvertakeEachOtherRefuseTheSame) {
  const std::vector<ReleasedRange> releases{{1, 2}, {4, 6}, {8, 10}, {8, 10}, {1, 6}, {12, 12}};
  std::vector<std::size_t> order(releases.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    ContextTable table(kA);
    for (const std::size_t i : order) table.learn(kHome, releases[i]);
    EXPECT_EQ(table.remembered(), 3U);
    for (std::uint64_t number = 1; number <= 14; ++number) {
      const bool is_open = number == 7 || number == 11 || number > 12;
      EXPECT_EQ(entering(table, number), is_open ? Errc::ok : Errc::context_released) << number;
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ContextTable, K3_DA13_AReleaseHasOneSizeHoweverManyContextsAreOpen) {
  ContextTable home(kHome);
  std::vector<ContextId> contexts;
  for (int i = 0; i < 20'000; ++i) contexts.push_back(home.create());
  std::mt19937_64 random(1);
  std::shuffle(contexts.begin(), contexts.end(), random);
  ContextTable peer(kA);
  for (const ContextId& id : contexts) {
    ASSERT_TRUE(peer.enter(id));
    home.released(id);
    const Release release{id, home.released_around(id)};
    ASSERT_LE(wire::encode(release)->size(), 40U);
    peer.learn(kHome, release.released);
    peer.released(id);
    ASSERT_FALSE(peer.enter(id));
  }
  EXPECT_EQ(peer.remembered(), 1U);
  EXPECT_EQ(peer.open_contexts(), 0U);
}

TEST(ContextTable, K3_DA13_RangesOfAHostileHomeAreRefusedOrMerged) {
  ContextTable table(kA);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const ReleasedRange range : {ReleasedRange{0, 5}, {5, 4}, {1, kMost}, {kMost, kMost}}) table.learn(kHome, range);
  EXPECT_EQ(table.remembered(), 0U);
  EXPECT_EQ(entering(table, 5), Errc::ok);
}

TEST(ContextTable, DA13_AHundredThousandContextsLeaveNothingBehind) {
  ContextTable home(kHome);
  ContextTable peer(kA);
  const ContextId long_lived = home.create();
  ASSERT_TRUE(peer.enter(long_lived));
  for (int i = 0; i < 100'000; ++i) {
    const ContextId id = home.create();
    ASSERT_TRUE(peer.enter(id));
    home.released(id);
    peer.learn(kHome, home.released_around(id));
    peer.released(id);
    ASSERT_LE(peer.remembered(), 2u);
  }
  EXPECT_EQ(peer.open_contexts(), 1u);
  EXPECT_EQ(home.open_contexts(), 1u);
  EXPECT_EQ(entering(peer, 2), Errc::context_released);
  home.released(long_lived);
  peer.learn(kHome, home.released_around(long_lived));
  peer.released(long_lived);
  EXPECT_EQ(peer.remembered(), 1u);
  EXPECT_EQ(peer.open_contexts(), 0u);
}

/// A Release that a home sends for `id`, and the questions that it leads to.
void release_to(ContextTable& peer, const ContextTable& home, const ContextId& id) {
  std::optional<ContextId> next = id;
  for (int questions = 0; next; ++questions) {
    ASSERT_LE(questions, 1) << "the reply to a question leads to none";
    next = peer.learn(kHome, home.released_around(*next));
    if (next) {
      ASSERT_TRUE(home.refuse(kA, Join{*next})) << "only a released context is asked about";
    }
  }
}

TEST(ContextTable, DA13_AWorkerThatTakesPartInFewOverlappingContextsKeepsFewRanges) {
  for (const std::size_t most_open : {3U, 10U, 40U}) {
    ContextTable home(kHome);
    ContextTable peer(kA);
    std::mt19937_64 random(most_open);
    std::vector<ContextId> open;
    std::size_t most_kept = 0;
    for (int i = 0; i < 20'000; ++i) {
      if (open.size() < most_open) open.push_back(home.create());
      if (open.size() < most_open) continue;
      const std::size_t ended = random() % open.size();
      const ContextId id = open[ended];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(ended));
      home.released(id);
      if (id.number % 3 != 0) continue;  // the peer takes no part in this context
      release_to(peer, home, id);
      most_kept = std::max(most_kept, peer.remembered());
    }
    EXPECT_LE(most_kept, ContextTable::kMostUnasked + 2 * most_open) << most_open << " contexts at once";
  }
}

TEST(ContextTable, DA13_TheLossOfTheHomeRefusesWhatWasOpenHere) {
  ContextTable table(kA);
  ASSERT_TRUE(table.enter(context(4)));
  EXPECT_EQ(table.peer_down(kHome), std::vector{context(4)});
  table.released(context(4));
  EXPECT_EQ(entering(table, 4), Errc::context_released);
  EXPECT_EQ(entering(table, 5), Errc::ok);
  EXPECT_TRUE(table.peer_down(kC).empty());
}

TEST(ContextTable, DA10_AMarkAtAWorkerWithoutTheContextIsAnswered) {
  ContextTable table(kA);
  const auto answer = table.refuse(kB, Mark{header(1, kC), {message_of(kA, 1)}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->to, kB);
  EXPECT_EQ(std::get<Fail>(answer->message).error.code(), Errc::context_released);
}

TEST(ContextTable, DA13_WhoJoinsAReleasedContextIsReleased) {
  ContextTable table(kHome);
  const ContextId id = table.create();
  table.released(id);
  const auto answer = table.refuse(kB, Join{id});
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<Release>(answer->message).released, (ReleasedRange{1, 1}));
  EXPECT_FALSE(table.refuse(kB, Join{context(99)}));
  EXPECT_FALSE(ContextTable(kA).refuse(kB, Join{id}));
}

}  // namespace
}  // namespace caftan::autograd::context_table_test
