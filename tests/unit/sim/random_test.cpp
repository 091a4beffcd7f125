// Streams of random numbers and their distributions: the same bits everywhere, and the right moments.
#include "caftan/sim/random.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "caftan/sim/statistics.hpp"

namespace caftan::sim::random_test {
namespace {

TEST(Random, SM18_ANumberDependsOnSeedProcessStreamAndOrdinalAlone) {
  std::uint64_t draws = 0;
  Random one(5, 3, 0, draws);
  std::vector<std::uint64_t> bits;
  for (int i = 0; i < 6; ++i) bits.push_back(one.bits());
  EXPECT_EQ(draws, 6);
  for (std::uint64_t i = 0; i < 6; ++i) {
    std::uint64_t at = i;
    EXPECT_EQ(Random(5, 3, 0, at).bits(), bits[i]);
  }
  std::uint64_t other = 0;
  EXPECT_NE(Random(6, 3, 0, other).bits(), bits[0]);
  other = 0;
  EXPECT_NE(Random(5, 4, 0, other).bits(), bits[0]);
  other = 0;
  EXPECT_NE(Random(5, 3, 1, other).bits(), bits[0]);
}

TEST(Random, TheBlockIsThatOfPhilox) {
  std::uint64_t draws = 2;
  const auto block = base::random_block({.seed = 9, .context = 4, .call = 0}, 1);
  EXPECT_EQ(Random(9, 4, 0, draws).bits(), std::uint64_t{block[1]} << 32 | block[0]);
}

TEST(Random, TheLogarithmIsWithinOneUnitInTheLastPlace) {
  std::uint64_t draws = 0;
  Random random(1, 0, 0, draws);
  for (int i = 0; i < 20'000; ++i) {
    const double x = i % 2 == 0 ? 1 - random.uniform()
                                : std::ldexp(1 + random.uniform(), static_cast<int>(random.below(2000)) - 1000);
    const double wanted = std::log(x);
    const double unit = std::nextafter(std::abs(wanted), INFINITY) - std::abs(wanted);
    ASSERT_LE(std::abs(logarithm(x) - wanted), 1.01 * unit) << x;
  }
  EXPECT_EQ(logarithm(1), 0);
}

TEST(Random, TheBitsOfALogarithmDoNotChange) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(logarithm(0.5)), std::bit_cast<std::uint64_t>(-0x1.62e42fefa39efp-1));
  EXPECT_EQ(std::bit_cast<std::uint64_t>(logarithm(10)), std::bit_cast<std::uint64_t>(0x1.26bb1bbb55516p+1));
}

TEST(Random, DistributionsHaveTheirMoments) {
  std::uint64_t draws = 0;
  Random random(2, 0, 0, draws);
  Tally uniform, exponential, normal, below;
  std::uint64_t chances = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    uniform.add(random.uniform(2, 4));
    exponential.add(random.exponential(3));
    normal.add(random.normal(-1, 2));
    below.add(static_cast<double>(random.below(6)));
    chances += random.chance(0.3);
  }
  EXPECT_NEAR(uniform.mean(), 3, 0.01);
  EXPECT_NEAR(uniform.deviation(), 2 / std::sqrt(12), 0.01);
  EXPECT_GE(uniform.least(), 2);
  EXPECT_LT(uniform.largest(), 4);
  EXPECT_NEAR(exponential.mean(), 3, 0.05);
  EXPECT_NEAR(exponential.deviation(), 3, 0.06);
  EXPECT_GE(exponential.least(), 0);
  EXPECT_NEAR(normal.mean(), -1, 0.03);
  EXPECT_NEAR(normal.deviation(), 2, 0.03);
  EXPECT_NEAR(below.mean(), 2.5, 0.03);
  EXPECT_EQ(below.least(), 0);
  EXPECT_EQ(below.largest(), 5);
  EXPECT_NEAR(static_cast<double>(chances) / kDraws, 0.3, 0.01);
  EXPECT_EQ(random.below(0), 0);
  EXPECT_EQ(random.below(1), 0);
}

TEST(Random, ANumberOfAnAgentDoesNotDependOnItsNeighbours) {
  const std::vector<std::uint64_t> all = {0, 1, 2, 1'000'000'007};
  std::vector<double> together(4);
  uniform_for(8, all, 3, together);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<double> one(1);
    uniform_for(8, std::span(all).subspan(i, 1), 3, one);
    EXPECT_EQ(one[0], together[i]);
    EXPECT_GE(one[0], 0);
    EXPECT_LT(one[0], 1);
    std::vector<double> later(1);
    uniform_for(8, std::span(all).subspan(i, 1), 4, later);
    EXPECT_NE(one[0], later[0]);
  }
}

}  // namespace
}  // namespace caftan::sim::random_test
