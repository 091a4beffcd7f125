#include "caftan/svg/internal/chart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "caftan/svg/internal/smoothing.hpp"

namespace caftan::svg::chart_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::string draw(const Chart& chart) { return render(std::vector<Chart>{chart}).value(); }

Chart chart_of(std::vector<double> y) {
  Series series{.label = "run", .y = std::move(y)};
  for (std::size_t i = 0; i < series.y.size(); ++i) series.x.push_back(static_cast<double>(i));
  return {.title = "loss", .x_label = "step", .series = {std::move(series)}};
}

TEST(Chart, HasBackgroundTitleAxesLegendAndLine) {
  const std::string svg = draw(chart_of({0, 10}));
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 560 324\" width=\"560\""));
  EXPECT_THAT(svg,
              AllOf(HasSubstr("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"), HasSubstr(">loss</text>"),
                    HasSubstr(">step</text>"), HasSubstr(">run</text>"), HasSubstr(">10</text>")));
  EXPECT_THAT(svg, HasSubstr("\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"1.5\""));
  EXPECT_THAT(svg, EndsWith("</g>\n</svg>\n"));
  EXPECT_EQ(svg, draw(chart_of({0, 10}))) << "the same bytes";
}

TEST(Chart, TheHighestValueIsDrawnAboveTheLowest) {
  const std::string svg = draw(chart_of({0, 10}));
  const std::size_t line = svg.rfind("<path d=\"M", svg.find("fill=\"none\""));
  double x1 = 0;
  double y1 = 0;
  double x2 = 0;
  double y2 = 0;
  ASSERT_EQ(std::sscanf(svg.c_str() + line, "<path d=\"M%lf,%lfL%lf,%lf", &x1, &y1, &x2, &y2), 4);
  EXPECT_LT(x1, x2);
  EXPECT_GT(y1, y2) << "y of SVG grows downwards";
}

TEST(Chart, OnePointIsADotAndAConstantALine) {
  EXPECT_EQ(count(draw(chart_of({3})), "<circle "), 1U);
  EXPECT_EQ(count(draw(chart_of({3, 3, 3})), "stroke-linejoin"), 1U);
  EXPECT_THAT(draw(chart_of({3, 3, 3})), Not(HasSubstr("nan")));
}

TEST(Chart, WhatIsNotFiniteIsAGap) {
  const std::string svg = draw(chart_of({1, 2, kNan, 3, 4, kInfinity, 5, -kInfinity, 1e308, 6, 7}));
  EXPECT_EQ(count(svg, "stroke-linejoin"), 3U);
  EXPECT_EQ(count(svg, "<circle "), 1U);
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(Chart, WithoutAValueThatCanBeDrawnSaysSo) {
  EXPECT_THAT(draw(chart_of({kNan, kInfinity})), HasSubstr(">no finite value</text>"));
  Chart negative = chart_of({-1, 0});
  negative.log_y = true;
  EXPECT_THAT(draw(negative), HasSubstr(">no finite value above 0</text>"));
}

TEST(Chart, ExtremeRangesAreDrawn) {
  for (const std::vector<double>& values :
       {std::vector{-1e300, 1e300}, std::vector{1e300, 1e300}, std::vector{1e-300, 2e-300}, std::vector{5e-324, 5e-324},
        std::vector{1e15, 1e15 + 1}}) {
    const std::string svg = draw(chart_of(values));
    EXPECT_EQ(count(svg, "stroke-linejoin"), 1U) << values.front();
    EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf")))) << values.front();
  }
}

TEST(Chart, ALogarithmicAxisHasPowersOfTen) {
  Chart chart = chart_of({0.01, 1, 100});
  chart.log_y = true;
  EXPECT_THAT(draw(chart), AllOf(HasSubstr(">0.01</text>"), HasSubstr(">1</text>"), HasSubstr(">100</text>")));
  Chart wide = chart_of({5e-324, 1e-299, 1e300});
  wide.log_y = true;
  EXPECT_THAT(draw(wide), AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(Chart, ABandLiesBehindItsLine) {
  Chart chart = chart_of({1, 2, 3});
  chart.series[0].low = {0, 1, 2};
  chart.series[0].high = {2, 3, 4};
  const std::string svg = draw(chart);
  EXPECT_LT(svg.find("fill-opacity=\"0.18\""), svg.find("stroke-linejoin"));
  EXPECT_EQ(count(svg, "fill-opacity"), 1U);
}

TEST(Chart, SmoothedLinesKeepTheirOwnFaint) {
  Chart chart = chart_of({1, 5, 1, 5});
  chart.smooth = 0.6;
  const std::string svg = draw(chart);
  EXPECT_EQ(count(svg, "stroke-linejoin"), 2U);
  EXPECT_EQ(count(svg, " opacity=\"0.25\""), 1U);
}

TEST(Chart, AMillionPointsStaySmall) {
  std::vector<double> values;
  for (int i = 0; i < 1'000'000; ++i) values.push_back(std::sin(i * 0.37) * i);
  EXPECT_LT(draw(chart_of(values)).size(), 100'000U);
  for (std::size_t i = 0; i < values.size(); i += 2) values[i] = kNan;
  EXPECT_LT(draw(chart_of(values)).size(), 100'000U);
}

TEST(Chart, ManySeriesWrapTheLegendAndDiffer) {
  Chart chart = chart_of({1, 2});
  chart.series = std::vector<Series>(20, Series(chart.series.front()));
  for (std::size_t i = 0; i < 20; ++i) chart.series[i].label = "cartpole-20261121-" + std::to_string(i);
  const std::string svg = draw(chart);
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 560 420\""));
  EXPECT_EQ(count(svg, "stroke=\"#0072b2\" stroke-width=\"2\""), 1U) << "the ninth has this colour, but is dashed";
}

TEST(Chart, SeveralStandSideBySide) {
  const std::vector<Chart> charts(3, chart_of({1, 2}));
  const std::string svg = render(charts, 2).value();
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 1120 648\""));
  EXPECT_THAT(svg, AllOf(HasSubstr("translate(0 0)"), HasSubstr("translate(560 0)"), HasSubstr("translate(0 324)")));
}

TEST(Chart, TextIsEscaped) {
  Chart chart = chart_of({1});
  chart.title = "<script>";
  chart.series[0].label = "a & b\n";
  EXPECT_THAT(draw(chart), AllOf(HasSubstr(">&lt;script&gt;</text>"), HasSubstr(">a &amp; b?</text>")));
}

TEST(Chart, WhatCannotBeDrawnIsNamed) {
  EXPECT_EQ(render({}).error().code(), Errc::bad_arguments);
  const auto fault = [](const Chart& chart) { return render(std::vector<Chart>{chart}).error().text(); };
  EXPECT_EQ(fault(chart_of({})), "the chart 'loss' has no point");
  Chart uneven = chart_of({1, 2});
  uneven.series[0].x.pop_back();
  EXPECT_EQ(fault(uneven), "the chart 'loss' has a series 'run' with arrays of different lengths");
  Chart half_a_band = chart_of({1, 2});
  half_a_band.series[0].low = {0, 1};
  EXPECT_THAT(fault(half_a_band), HasSubstr("different lengths"));
  Chart smooth = chart_of({1, 2});
  smooth.smooth = 1;
  EXPECT_THAT(fault(smooth), HasSubstr("not >=0..<1"));
  EXPECT_EQ(render(std::vector<Chart>{chart_of({1})}, 0).error().code(), Errc::bad_arguments);
}

TEST(Smoothing, IsTensorBoards) {
  // 0.5 * 0 + 0.5 * 1 = 0.5, / (1 - 0.5); 0.5 * 0.5 + 0.5 * 3 = 1.75, / (1 - 0.25)
  EXPECT_THAT(smoothed(std::vector<double>{1, 3}, 0.5), ElementsAre(1, 1.75 / 0.75));
  EXPECT_THAT(smoothed(std::vector<double>{4, 2}, 0), ElementsAre(4, 2));
  EXPECT_THAT(smoothed(std::vector<double>{0.1, 0.1, 0.1}, 0.9), ElementsAre(0.1, 0.1, 0.1));
  const auto gap = smoothed(std::vector<double>{1, kNan, 3}, 0.5);
  EXPECT_TRUE(std::isnan(gap[1]));
  EXPECT_EQ(gap[2], 1.75 / 0.75) << "a gap does not count";
  EXPECT_TRUE(smoothed({}, 0.5).empty());
}

}  // namespace
}  // namespace caftan::svg::chart_test
