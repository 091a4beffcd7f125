// Which gradients make a step together.
#include "batch_parameter_server/rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace caftan::batch_parameter_server::rounds_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Arrival = Rounds::Arrival;

constexpr base::Duration kTimeout = std::chrono::seconds(2);
constexpr base::TimePoint kStart{};

TEST(Rounds, AreClosedWhenAQuorumIsThere) {
  Rounds rounds(3, 2, kTimeout, 0);
  EXPECT_EQ(rounds.arrive(2, 0, kStart).value(), Arrival::counts);
  EXPECT_FALSE(rounds.is_full());
  EXPECT_EQ(rounds.arrive(0, 0, kStart).value(), Arrival::counts);
  EXPECT_TRUE(rounds.is_full());
  EXPECT_THAT(rounds.arrived(), ElementsAre(0, 2));
  rounds.close();
  EXPECT_EQ(rounds.version(), 1);
  EXPECT_FALSE(rounds.is_full());
  EXPECT_THAT(rounds.arrived(), ElementsAre());
}

TEST(Rounds, AGradientOfAClosedRoundIsLate) {
  Rounds rounds(2, 1, kTimeout, 5);
  EXPECT_EQ(rounds.arrive(0, 5, kStart).value(), Arrival::counts);
  rounds.close();
  EXPECT_EQ(rounds.arrive(1, 5, kStart).value(), Arrival::late);
  EXPECT_EQ(rounds.arrive(1, 0, kStart).value(), Arrival::late);
  EXPECT_FALSE(rounds.is_full()) << "late gradients do not count";
  EXPECT_EQ(rounds.arrive(1, 6, kStart).value(), Arrival::counts);
}

TEST(Rounds, WhatCannotBeIsRefusedAndChangesNothing) {
  Rounds rounds(2, 2, kTimeout, 3);
  const auto refused = [&rounds](std::uint32_t trainer, std::int64_t version) {
    const auto arrival = rounds.arrive(trainer, version, kStart);
    EXPECT_FALSE(arrival);
    EXPECT_EQ(arrival.error().code(), Errc::bad_arguments);
    return arrival.error().text();
  };
  EXPECT_THAT(refused(2, 3), HasSubstr("there is no trainer 2, there are 2"));
  EXPECT_THAT(refused(0, 4), HasSubstr("at version 4, the model has version 3"));
  EXPECT_THAT(refused(0, -1), HasSubstr("at version -1"));
  ASSERT_TRUE(rounds.arrive(0, 3, kStart));
  EXPECT_THAT(refused(0, 3), HasSubstr("a second gradient of trainer 0"));
  rounds.lose(1);
  EXPECT_THAT(refused(1, 3), HasSubstr("trainer 1 is lost"));
  EXPECT_THAT(rounds.arrived(), ElementsAre(0));
}

TEST(Rounds, GoOnAsLongAsAQuorumIsLeft) {
  Rounds rounds(3, 2, kTimeout, 0);
  ASSERT_TRUE(rounds.arrive(0, 0, kStart));
  rounds.lose(0);
  EXPECT_TRUE(rounds.can_be_full());
  rounds.lose(1);
  EXPECT_TRUE(rounds.can_be_full()) << "what trainer 0 sent counts";
  ASSERT_TRUE(rounds.arrive(2, 0, kStart));
  EXPECT_TRUE(rounds.is_full());
  rounds.close();
  EXPECT_FALSE(rounds.can_be_full()) << "only trainer 2 is left for the next round";
}

TEST(Rounds, CM13_AQuorumWaitsForTheOthersAsLongAsItsTimeSays) {
  Rounds rounds(3, 2, kTimeout, 0);
  const base::TimePoint later = kStart + std::chrono::seconds(10);
  ASSERT_TRUE(rounds.arrive(0, 0, kStart));
  EXPECT_FALSE(rounds.may_close(later)) << "one is no quorum";
  ASSERT_TRUE(rounds.arrive(1, 0, later));
  EXPECT_EQ(rounds.closes_at(), later + kTimeout) << "the time begins with the quorum";
  EXPECT_FALSE(rounds.may_close(later + kTimeout - base::Duration(1)));
  EXPECT_TRUE(rounds.may_close(later + kTimeout));
  ASSERT_TRUE(rounds.arrive(2, 0, later));
  EXPECT_TRUE(rounds.may_close(later)) << "all are there";
  rounds.close();
  EXPECT_FALSE(rounds.closes_at());
  EXPECT_FALSE(rounds.may_close(later + kTimeout));
}

TEST(Rounds, CM13_ARoundWaitsForNoTrainerThatIsLost) {
  Rounds rounds(4, 2, kTimeout, 0);
  for (const std::uint32_t trainer : {0U, 1U, 2U}) ASSERT_TRUE(rounds.arrive(trainer, 0, kStart));
  EXPECT_FALSE(rounds.may_close(kStart)) << "trainer 3 may still come";
  rounds.lose(3);
  EXPECT_TRUE(rounds.may_close(kStart));
  rounds.close();
  rounds.lose(2);
  ASSERT_TRUE(rounds.arrive(0, 1, kStart));
  EXPECT_FALSE(rounds.may_close(kStart + 2 * kTimeout)) << "no quorum";
  ASSERT_TRUE(rounds.arrive(1, 1, kStart));
  EXPECT_TRUE(rounds.may_close(kStart));
}

/// Random histories against what the rules say of each gradient by itself.
TEST(Rounds, EachGradientCountsInTheRoundOfItsVersionOrIsLate) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&random](std::uint64_t most) { return static_cast<std::uint32_t>(random() % most); };
    const std::uint32_t trainers = 1 + below(5);
    const std::uint32_t quorum = 1 + below(trainers);
    Rounds rounds(trainers, quorum, kTimeout, 0);
    std::map<std::uint32_t, std::int64_t> computing;  // by trainer: the version that its gradient is of
    for (std::uint32_t i = 0; i < trainers; ++i) computing[i] = 0;
    std::map<std::uint32_t, bool> waits;
    for (int event = 0; event < 100; ++event) {
      const std::uint32_t trainer = below(trainers);
      if (waits[trainer]) continue;
      const auto arrival = rounds.arrive(trainer, computing[trainer], kStart);
      ASSERT_TRUE(arrival) << "seed " << seed;
      ASSERT_EQ(*arrival == Arrival::counts, computing[trainer] == rounds.version()) << "seed " << seed;
      waits[trainer] = *arrival == Arrival::counts;
      computing[trainer] = rounds.version();
      std::size_t waiting = 0;
      for (const auto& [of, is_waiting] : waits) waiting += is_waiting ? 1 : 0;
      ASSERT_EQ(rounds.arrived().size(), waiting) << "seed " << seed;
      ASSERT_EQ(rounds.is_full(), waiting >= quorum) << "seed " << seed;
      if (!rounds.is_full() || below(2) == 0) continue;
      rounds.close();
      for (auto& [of, is_waiting] : waits) {
        if (is_waiting) computing[of] = rounds.version();
        is_waiting = false;
      }
    }
  }
}

}  // namespace
}  // namespace caftan::batch_parameter_server::rounds_test
