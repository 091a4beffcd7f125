#include "ps_bench/statistics.hpp"

#include <gtest/gtest.h>

namespace caftan::ps_bench::statistics_test {
namespace {

TEST(Statistics, AreThoseOfPythonsModule) {
  // statistics.mean, variance and stdev of [2, 4, 4, 4, 5, 5, 7, 9]
  const Statistics found = statistics_of({9, 4, 2, 4, 5, 7, 4, 5});
  EXPECT_EQ(found.count, 8U);
  EXPECT_EQ(found.min, 2);
  EXPECT_EQ(found.max, 9);
  EXPECT_DOUBLE_EQ(found.mean, 5);
  EXPECT_DOUBLE_EQ(*found.variance, 32.0 / 7);
  EXPECT_DOUBLE_EQ(*found.stdev, 2.138089935299395);
}

TEST(Statistics, OfOneValueHaveNoVariance) {
  const Statistics found = statistics_of({3});
  EXPECT_EQ(found.min, 3);
  EXPECT_EQ(found.max, 3);
  EXPECT_EQ(found.mean, 3);
  EXPECT_FALSE(found.variance);
  EXPECT_FALSE(found.stdev);
}

TEST(Statistics, OfSeveralWorkersAreOfAllTheirValues) {
  const Times all = join({{{"a", {1, 2}}}, {{"a", {3}}, {"b", {4}}}});
  EXPECT_EQ(all, (Times{{"a", {1, 2, 3}}, {"b", {4}}}));
  EXPECT_TRUE(join({}).empty());
}

}  // namespace
}  // namespace caftan::ps_bench::statistics_test
