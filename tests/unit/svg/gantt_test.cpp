#include "caftan/svg/internal/gantt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace caftan::svg::gantt_test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Gantt two_rows() {
  return {.title = "batch 3",
          .x_label = "ms",
          .kinds = {"forward", "backward"},
          .rows = {{.label = "stage-0",
                    .boxes = {{.begin = 0, .end = 10, .kind = 0, .label = "0"},
                              {.begin = 30, .end = 40, .kind = 1, .label = "0"}}},
                   {.label = "stage-1", .boxes = {{.begin = 10, .end = 20, .kind = 0, .label = "0"}}}}};
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::string refused(const Gantt& gantt) {
  const auto drawn = render(gantt);
  return drawn ? "drawn" : drawn.error().text();
}

TEST(Gantt, HasABoxWithATextForEachWorkInTheRowAndColourOfItsKind) {
  const std::string picture = render(two_rows()).value();
  EXPECT_THAT(picture, AllOf(StartsWith("<svg xmlns="), EndsWith("</svg>\n"), HasSubstr(">batch 3</text>"),
                             HasSubstr(">stage-0</text>"), HasSubstr(">stage-1</text>"), HasSubstr(">forward</text>"),
                             HasSubstr(">backward</text>"), HasSubstr(">ms</text>")));
  EXPECT_EQ(count(picture, "<title>"), 3U);
  EXPECT_THAT(picture, HasSubstr("<title>backward 0: 30 to 40</title>"));
  EXPECT_EQ(count(picture, "fill=\"#56b4e9\" stroke"), 2U);
  EXPECT_EQ(count(picture, "fill=\"#e69f00\" stroke"), 1U);
  EXPECT_EQ(render(two_rows()).value(), picture);
}

TEST(Gantt, PlacesAreInProportionToTheTime) {
  // The rows begin at 16 pixels and 7 characters of 6.2; up to 884 there are 40 units of time.
  const std::string picture = render(two_rows()).value();
  EXPECT_THAT(picture, HasSubstr("<rect x=\"59.4\" y=\"57\" width=\"206.15\" height=\"24\""));
  EXPECT_THAT(picture, HasSubstr("<rect x=\"677.85\" y=\"57\" width=\"206.15\" height=\"24\""));
  EXPECT_THAT(picture, HasSubstr("<rect x=\"265.55\" y=\"91\" width=\"206.15\" height=\"24\""));
}

TEST(Gantt, AnyBytesAreHarmlessAndALabelWithoutRoomIsLeftOut) {
  Gantt gantt = two_rows();
  gantt.rows[0].label = "<&\x01";
  gantt.rows[0].boxes[0].label = std::string(50, 'w');
  const std::string picture = render(gantt).value();
  EXPECT_THAT(picture, AllOf(HasSubstr("&lt;&amp;?"), Not(HasSubstr("<&"))));
  EXPECT_EQ(count(picture, ">" + std::string(50, 'w')), 0U) << "not in the box";
  EXPECT_EQ(count(picture, std::string(50, 'w') + ": 0 to 10</title>"), 1U) << "but beside it";
}

TEST(Gantt, AnInstantCanBeSeen) {
  const Gantt gantt{.kinds = {"a"}, .rows = {{.label = "r", .boxes = {{.begin = 5, .end = 5, .kind = 0}}}}};
  EXPECT_THAT(render(gantt).value(), HasSubstr("width=\"0.5\" height=\"24\""));
}

TEST(Gantt, WhatCannotBeDrawnIsNamed) {
  EXPECT_EQ(refused({}), "a Gantt chart without a box");
  Gantt gantt = two_rows();
  gantt.rows[1].boxes[0].kind = 2;
  EXPECT_EQ(refused(gantt), "the box '0' of the row 'stage-1' has a kind without a name");
  gantt = two_rows();
  gantt.rows[1].boxes[0].end = 9;
  EXPECT_EQ(refused(gantt), "the box '0' of the row 'stage-1' ends before it begins");
  gantt.rows[1].boxes[0].end = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refused(gantt), "the box '0' of the row 'stage-1' has no finite times");
}

}  // namespace
}  // namespace caftan::svg::gantt_test
