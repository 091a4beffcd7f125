#include "caftan/svg/internal/ticks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace caftan::svg::ticks_test {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> texts;
  for (const Tick& tick : ticks) texts.push_back(tick.label);
  return texts;
}

TEST(Ticks, AreRoundNumbersWithinTheRange) {
  EXPECT_THAT(labels(linear_ticks({0, 100}, 5)), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(labels(linear_ticks({-0.31, 0.52}, 5)), ElementsAre("-0.2", "0.0", "0.2", "0.4"));
  EXPECT_THAT(labels(linear_ticks({0.001, 0.0052}, 5)), ElementsAre("0.001", "0.002", "0.003", "0.004", "0.005"));
  EXPECT_THAT(labels(linear_ticks({-500, -100}, 5)), ElementsAre("-500", "-400", "-300", "-200", "-100"));
}

TEST(Ticks, OfLargeAndOfTinyNumbersHaveExponents) {
  EXPECT_THAT(labels(linear_ticks({0, 2.2e6}, 5)), ElementsAre("0", "5e5", "1e6", "1.5e6", "2e6"));
  EXPECT_THAT(labels(linear_ticks({0, 4.1e-7}, 5)), ElementsAre("0", "1e-7", "2e-7", "3e-7", "4e-7"));
  EXPECT_THAT(labels(linear_ticks({-1e300, 1e300}, 5)), ElementsAre("-1e300", "-5e299", "0", "5e299", "1e300"));
}

TEST(Ticks, OfANarrowRangeFarFromZeroDiffer) {
  const auto texts = labels(linear_ticks({1e9, 1e9 + 4}, 5));
  EXPECT_THAT(texts, ElementsAre("1e9", "1.000000001e9", "1.000000002e9", "1.000000003e9", "1.000000004e9"));
}

TEST(Ticks, ASingleValueGetsARangeAroundIt) {
  for (const double value : {0.0, 5.0, -3e-9, 1e300, -1e300, 5e-324}) {
    const Range range = padded({value, value}, 0.05);
    EXPECT_LT(range.low, value) << value;
    EXPECT_GT(range.high, value) << value;
    EXPECT_GE(linear_ticks(range, 5).size(), 2U) << value;
  }
  const Range wide = padded({-1e300, 1e300}, 0.05);
  EXPECT_DOUBLE_EQ(wide.high, 1.1e300);
  EXPECT_EQ(padded({0, 10}, 0.1).low, -1);
}

TEST(Ticks, OfALogarithmicAxisArePowersOfTen) {
  EXPECT_THAT(labels(log_ticks({0.5, 2000}, 6)), ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(labels(log_ticks({0.001, 0.2}, 6)), ElementsAre("0.001", "0.01", "0.1"));
  EXPECT_THAT(labels(log_ticks({1e-6, 1e6}, 6)), ElementsAre("1e-6", "0.001", "1", "1000", "1e6"));
  EXPECT_THAT(labels(log_ticks({1.2, 1.8}, 5)), ElementsAre("1.2", "1.4", "1.6", "1.8")) << "no power of ten within";
}

}  // namespace
}  // namespace caftan::svg::ticks_test
