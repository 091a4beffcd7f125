#include "caftan/app/seeds.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace caftan::app::seeds_test {
namespace {

TEST(Seeds, AreTheSameForEver) {
  EXPECT_EQ(stream_seed(543, "agent", 0, "init"), stream_seed(543, "agent", 0, "init"));
  EXPECT_EQ(stream_seed(543, "observer", 1, "environment"),
            0x624139ce61be4dcULL);  // another program computed this from the documented formula
}

TEST(Seeds, DifferWithEachPart) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t root = 0; root < 8; ++root) {
    for (const char* role : {"agent", "observer", "a", ""}) {
      for (std::uint32_t replica = 0; replica < 32; ++replica) {
        for (const char* purpose : {"init", "dropout", "environment"}) {
          seeds.insert(stream_seed(root, role, replica, purpose));
        }
      }
    }
  }
  EXPECT_EQ(seeds.size(), 8U * 4 * 32 * 3);
}

TEST(Seeds, OneChangedBitChangesAboutHalfOfThem) {
  int bits = 0;
  for (int bit = 0; bit < 64; ++bit) {
    bits +=
        __builtin_popcountll(stream_seed(0, "agent", 0, "x") ^ stream_seed(std::uint64_t{1} << bit, "agent", 0, "x"));
  }
  EXPECT_NEAR(bits / 64.0, 32.0, 2.0);
}

}  // namespace
}  // namespace caftan::app::seeds_test
