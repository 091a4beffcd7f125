#include "caftan/svg/internal/lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "caftan/svg/internal/text.hpp"

namespace caftan::svg::lines_test {
namespace {

using ::testing::ElementsAre;

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

TEST(Lines, OfAColumnOfPixelsFirstLowestHighestAndLastStay) {
  const std::vector<Point> points{{1.0, 5}, {1.1, 6}, {1.2, 9}, {1.3, 7}, {1.4, 1}, {1.9, 4}, {2.0, 4}};
  EXPECT_THAT(thinned(points), ElementsAre(Line{{1.0, 5}, {1.2, 9}, {1.4, 1}, {1.9, 4}, {2.0, 4}}));
}

TEST(Lines, AGapEndsALineWhereItsColumnHasNothingElse) {
  const std::vector<Point> points{{1, 5}, {2, 6}, {3, kGap}, {4, 7}, {5, 8}, {5.5, kGap}, {6, 9}};
  EXPECT_THAT(thinned(points), ElementsAre(Line{{1, 5}, {2, 6}}, Line{{4, 7}, {5, 8}, {6, 9}}));
  EXPECT_TRUE(thinned({}).empty());
  EXPECT_TRUE(thinned(std::vector<Point>{{1, kGap}}).empty());
}

TEST(Lines, OutlinesGoForwardAboveAndBackBelow) {
  const std::vector<Point> low{{1, 1}, {2, 2}, {3, kGap}, {4, 4}};
  const std::vector<Point> high{{1, 11}, {2, 12}, {3, 13}, {4, 14}};
  EXPECT_THAT(outlines(low, high), ElementsAre(Line{{1, 11}, {2, 12}, {2, 2}, {1, 1}}, Line{{4, 14}, {4, 4}}));
}

TEST(Text, CoordinatesHaveAtMostTwoDecimals) {
  EXPECT_EQ(path_of({{1, 2.5}, {3.004, -0.001}}), "M1,2.5L3,0");
  EXPECT_EQ(px(1000), "1000");
}

TEST(Text, AnyBytesBecomeCharactersThatXmlAllows) {
  EXPECT_EQ(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
  EXPECT_EQ(shown("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 80), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(shown("a\nb\x7f\xff\xc3", 80), "a?b???");
  EXPECT_EQ(shown("\xc0\x80\xed\xa0\x80", 80), "?????") << "too long a form, and a surrogate";
  EXPECT_EQ(shown("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9...") << "cut between characters";
  EXPECT_EQ(length_of("caf\xc3\xa9"), 4U);
}

}  // namespace
}  // namespace caftan::svg::lines_test
