// Random histories over the real ForkTable, UserFork and CreationLedger, and the proof that each rule is needed.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "rref_model_runs.hpp"

namespace caftan::rpc::model::rref_model_test {
namespace {

constexpr std::uint64_t kSeed = 20240611;

TEST(RRefModel, RR1_to_RR14_HoldInTwentyThousandHistories) {
  const Found found = first_bad_history(Without::nothing, kSeed, 0, 20'000);
  EXPECT_FALSE(found.bad) << test::report<World>(found, Without::nothing);
}

TEST(RRefModel, AHistoryRunsTheSameWayEachTime) {
  for (std::uint64_t index = 0; index < 50; ++index) {
    const History history = make_history(kSeed, index);
    std::vector<std::string> first, second;
    World(Without::nothing, &first).run(history);
    World(Without::nothing, &second).run(history);
    ASSERT_EQ(first, second);
  }
}

TEST(RRefModel, AShrunkHistoryIsBadAndEveryStepOfItIsNeeded) {
  const Without without = Without::rr7_waiting_for_children;
  const auto is_bad = [&](const History& history) { return !World(without).run(history).empty(); };
  const Found found = first_bad_history(without, kSeed, 0, 100'000);
  ASSERT_TRUE(found.bad);
  const History shortest = shrink(found.history, is_bad);
  EXPECT_TRUE(is_bad(shortest));
  EXPECT_LE(shortest.steps.size(), found.history.steps.size());
  for (std::size_t i = 0; i < shortest.steps.size(); ++i) {
    History shorter = shortest;
    shorter.steps.erase(shorter.steps.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(is_bad(shorter)) << "step " << i << " is not needed";
  }
}

class RRefModelWithout : public ::testing::TestWithParam<Without> {};

TEST_P(RRefModelWithout, IsFoundWithin100000Histories) {
  const Found found = first_bad_history(GetParam(), kSeed, 0, 100'000);
  ASSERT_TRUE(found.bad) << "without " << to_string(GetParam()) << " nothing went wrong";
  const History shortest = test::shortest_bad<World>(found.history, GetParam());
  std::cout << "without " << to_string(GetParam()) << ": found after " << found.histories << " histories, shortest "
            << shortest.steps.size() << " steps: " << World(GetParam()).run(shortest) << "\n";
  // With the rule in force the same history breaks nothing, so the failure was due to the missing rule.
  EXPECT_EQ(World().run(shortest), "");
}

std::vector<Without> all_rules() {
  std::vector<Without> all;
  for (int rule = 1; rule <= static_cast<int>(Without::watches); ++rule) all.push_back(static_cast<Without>(rule));
  return all;
}

INSTANTIATE_TEST_SUITE_P(RR1_to_RR14, RRefModelWithout, ::testing::ValuesIn(all_rules()),
                         [](const auto& info) { return test::test_name(to_string(info.param)); });

}  // namespace
}  // namespace caftan::rpc::model::rref_model_test
