#include "caftan/base/internal/repeated_lines.hpp"

#include <gtest/gtest.h>

namespace caftan::repeated_lines_test {
namespace {

TEST(RepeatedLines, U10_TheFirstIsWrittenAndTheRestOfItsPeriodCounted) {
  base::RepeatedLines lines;
  EXPECT_TRUE(lines.add("a"));
  EXPECT_FALSE(lines.add("a"));
  EXPECT_FALSE(lines.add("a"));
  EXPECT_TRUE(lines.add("b")) << "another key has its own period";
  EXPECT_EQ(lines.end_period("a"), 2U);
  EXPECT_FALSE(lines.add("a")) << "a period with lines is followed by another one";
  EXPECT_EQ(lines.end_period("a"), 1U);
  EXPECT_EQ(lines.end_period("a"), 0U);
  EXPECT_TRUE(lines.add("a")) << "a period without lines is the last one";
  EXPECT_EQ(lines.end_period("c"), 0U);
}

TEST(RepeatedLines, U10_TheEndOfAllSaysWhatWasCounted) {
  base::RepeatedLines lines;
  lines.add("a");
  lines.add("b");
  lines.add("b");
  const auto counted = lines.end_all();
  ASSERT_EQ(counted.size(), 1U);
  EXPECT_EQ(counted[0], std::pair(std::string("b"), std::size_t{1}));
  EXPECT_EQ(lines.end_period("b"), 0U);
  EXPECT_TRUE(lines.add("b"));
}

TEST(RepeatedLines, U10_ALineHasItsCount) {
  EXPECT_EQ(base::RepeatedLines::with_count("f#: # more", 12), "f#: 12 more");
}

}  // namespace
}  // namespace caftan::repeated_lines_test
