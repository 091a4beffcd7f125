#include "rl_bench/measurement.hpp"

#include <gtest/gtest.h>

namespace caftan::rl_bench::measurement_test {
namespace {

TEST(Percentile, IsLinearBetweenTwoValuesAsNumPyHasIt) {
  // numpy.percentile([1, 2, 4, 8], [50, 75, 90, 95])
  const Percentiles found = percentiles_of({8, 1, 4, 2});
  EXPECT_DOUBLE_EQ(found[0], 3);
  EXPECT_DOUBLE_EQ(found[1], 5);
  EXPECT_DOUBLE_EQ(found[2], 6.8);
  EXPECT_DOUBLE_EQ(found[3], 7.4);
}

TEST(Percentile, OfOneValueIsThatOfNoneZero) {
  EXPECT_EQ(percentiles_of({3}), (Percentiles{3, 3, 3, 3}));
  EXPECT_EQ(percentiles_of({}), Percentiles{});
}

TEST(Summary, HasTheNamesOfTheOriginal) {
  const auto summary = summarize({.agent_latency = {0.5}, .agent_throughput = {16}, .observer_latency = {0.25, 0.25}});
  ASSERT_EQ(summary.size(), 4U);
  EXPECT_EQ(summary[0], NamedPercentiles("agent latency (seconds)", {0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(summary[1], NamedPercentiles("agent throughput", {16, 16, 16, 16}));
  EXPECT_EQ(summary[2], NamedPercentiles("observer latency (seconds)", {0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(summary[3], NamedPercentiles("observer throughput", {4, 4, 4, 4}));
}

}  // namespace
}  // namespace caftan::rl_bench::measurement_test
