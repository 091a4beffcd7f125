// Random histories over the real classes of the backward protocol, and the proof that each rule is needed.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "backward_model_runs.hpp"

namespace caftan::autograd::model::backward_model_test {
namespace {

constexpr std::uint64_t kSeed = 20250214;

// DA-1, DA-3 to DA-10, DA-12 (messages come in any order), DA-13, DA-16, DA-19.
TEST(BackwardModel, DA1_to_DA19_HoldInTenThousandHistories) {
  const Found found = first_bad_history(Without::nothing, kSeed, 0, 10'000);
  EXPECT_FALSE(found.bad) << test::report<World>(found, Without::nothing);
  std::cout << found.histories << " histories, passes: " << found.ok << " ok, " << found.failed << " failed\n";
  EXPECT_GT(found.ok, 10'000);
  EXPECT_GT(found.failed, 2'000);
}

TEST(BackwardModel, AHistoryRunsTheSameWayEachTime) {
  for (std::uint64_t index = 0; index < 50; ++index) {
    const History history = make_history(kSeed, index);
    std::vector<std::string> first, second;
    World(Without::nothing, &first).run(history);
    World(Without::nothing, &second).run(history);
    ASSERT_EQ(first, second);
  }
}

class BackwardModelWithout : public ::testing::TestWithParam<Without> {};

TEST_P(BackwardModelWithout, IsFoundWithin100000Histories) {
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
  for (int rule = 1; rule <= static_cast<int>(Without::da19_release_waits); ++rule) {
    all.push_back(static_cast<Without>(rule));
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(DA1_to_DA19, BackwardModelWithout, ::testing::ValuesIn(all_rules()),
                         [](const auto& info) { return test::test_name(to_string(info.param)); });

}  // namespace
}  // namespace caftan::autograd::model::backward_model_test
