#include "caftan/base/keyed_random.hpp"

#include <gtest/gtest.h>

#include <set>

namespace caftan::base::keyed_random_test {
namespace {

TEST(KeyedRandom, IsAFunctionOfTheWholeKey) {
  std::set<std::array<std::uint32_t, 4>> blocks;
  for (std::uint64_t seed : {0U, 1U, 7U}) {
    for (std::uint64_t context : {0U, 1U, 600U}) {
      for (std::uint64_t call : {0U, 1U, 2U}) {
        for (std::uint64_t index : {0U, 1U, 2U}) {
          const RandomKey key{.seed = seed, .context = context, .call = call};
          EXPECT_TRUE(blocks.insert(random_block(key, index)).second);
          EXPECT_EQ(random_block(key, index), random_block(key, index));
        }
      }
    }
  }
  EXPECT_EQ(blocks.size(), 81U);
}

TEST(KeyedRandom, EveryBitOfTheKeyCounts) {
  const RandomKey key{.seed = 3, .context = 5, .call = 7};
  const std::array<std::uint32_t, 4> block = random_block(key, 9);
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t flip = std::uint64_t{1} << bit;
    EXPECT_NE(random_block({.seed = key.seed ^ flip, .context = 5, .call = 7}, 9), block) << bit;
    EXPECT_NE(random_block({.seed = 3, .context = key.context ^ flip, .call = 7}, 9), block) << bit;
    EXPECT_NE(random_block({.seed = 3, .context = 5, .call = key.call ^ flip}, 9), block) << bit;
    EXPECT_NE(random_block(key, std::uint64_t{9} ^ flip), block) << bit;
  }
}

TEST(KeyedRandom, EachBitOfEachPartCountsSeparately) {
  for (const std::uint64_t base :
       {std::uint64_t{0}, std::uint64_t{9}, ~std::uint64_t{0}, std::uint64_t{0x5555555555555555}}) {
    std::set<std::array<std::uint32_t, 4>> blocks{random_block({.seed = base, .context = base, .call = base}, base)};
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t flipped = base ^ (std::uint64_t{1} << bit);
      EXPECT_TRUE(blocks.insert(random_block({.seed = flipped, .context = base, .call = base}, base)).second) << bit;
      EXPECT_TRUE(blocks.insert(random_block({.seed = base, .context = flipped, .call = base}, base)).second) << bit;
      EXPECT_TRUE(blocks.insert(random_block({.seed = base, .context = base, .call = flipped}, base)).second) << bit;
      EXPECT_TRUE(blocks.insert(random_block({.seed = base, .context = base, .call = base}, flipped)).second) << bit;
    }
  }
}

TEST(KeyedRandom, NeverChangesBetweenVersions) {
  // The expected words come from an implementation of Philox4x32-10 that reproduces the known answers of the
  // algorithm's authors.
  const std::array<std::uint32_t, 4> first = random_block({.seed = 543, .context = 2, .call = 1}, 3);
  EXPECT_EQ(first, (std::array<std::uint32_t, 4>{1521280651U, 1791751955U, 3806611455U, 1788627832U}));
}

}  // namespace
}  // namespace caftan::base::keyed_random_test
