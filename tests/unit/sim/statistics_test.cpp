// Statistics against what their definitions give, merged and over time; tables of them and of records.
#include "caftan/sim/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caftan/sim/record.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::sim::statistics_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Tally, HasMeanDeviationLeastAndLargest) {
  Tally tally;
  for (const double value : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) tally.add(value);
  EXPECT_EQ(tally.count(), 8);
  EXPECT_DOUBLE_EQ(tally.mean(), 5);
  EXPECT_DOUBLE_EQ(tally.deviation(), std::sqrt(32.0 / 7));
  EXPECT_EQ(tally.least(), 2);
  EXPECT_EQ(tally.largest(), 9);
}

TEST(Tally, MergedOnesCountAllValues) {
  Tally all, even, odd;
  for (int i = 0; i < 50; ++i) {
    all.add(i * i);
    (i % 2 == 0 ? even : odd).add(i * i);
  }
  Tally merged;
  merged.merge(even);
  merged.merge(odd);
  merged.merge(Tally());
  EXPECT_EQ(merged.count(), all.count());
  EXPECT_DOUBLE_EQ(merged.mean(), all.mean());
  EXPECT_DOUBLE_EQ(merged.deviation(), all.deviation());
}

TEST(TimeAverage, WeighsValuesByTheTimeTheyHold) {
  TimeAverage average;
  average.set(Time{0}, 1);
  average.set(Time{2 * kTicksPerUnit}, 5);
  average.close(Time{3 * kTicksPerUnit});
  EXPECT_DOUBLE_EQ(average.mean(), (2 * 1 + 1 * 5) / 3.0);
  EXPECT_EQ(average.largest(), 5);
}

TEST(TimeAverage, AfterAResetCountsTheTimeSince) {
  TimeAverage average;
  average.set(Time{0}, 100);
  average.set(Time{kTicksPerUnit}, 3);
  average.reset(Time{2 * kTicksPerUnit});
  average.set(Time{3 * kTicksPerUnit}, 1);
  average.close(Time{4 * kTicksPerUnit});
  EXPECT_DOUBLE_EQ(average.mean(), 2);
  EXPECT_EQ(average.largest(), 3);
}

TEST(Histogram, CountsBelowInsideAndAbove) {
  Histogram histogram(0, 10, 5);
  for (const double value : {-1.0, 0.0, 1.9, 2.0, 9.99, 10.0, std::nan("")}) histogram.add(value);
  EXPECT_THAT(histogram.counts(), ElementsAre(1, 2, 1, 0, 0, 1, 2));
}

TEST(Statistics, AreMergedByNameInTheOrderOfIds) {
  Tally one, two;
  one.add(1);
  two.add(3);
  const std::vector<LpStatistic> all = {
      {LpId(0), "wait", "s", one}, {LpId(0), "jobs", "", TimeAverage()}, {LpId(1), "wait", "s", two}};
  const auto merged = merge_statistics(all).value();
  ASSERT_EQ(merged.size(), 2);
  EXPECT_EQ(merged[0].name, "wait");
  EXPECT_EQ(merged[0].processes, 2);
  EXPECT_DOUBLE_EQ(std::get<Tally>(merged[0].value).mean(), 2);
  EXPECT_THAT(scalars_csv(merged), HasSubstr("wait,s,mean,2.0\n"));
}

TEST(Statistics, OneNameForTwoKindsIsAnError) {
  const std::vector<LpStatistic> kinds = {{LpId(0), "wait", "", Tally()}, {LpId(4), "wait", "", TimeAverage()}};
  EXPECT_THAT(merge_statistics(kinds).error().text(), HasSubstr("'wait' of LP 4 is of another kind"));
  const std::vector<LpStatistic> parts = {{LpId(0), "wait", "", Histogram(0, 1, 2)},
                                          {LpId(4), "wait", "", Histogram(0, 1, 3)}};
  EXPECT_THAT(merge_statistics(parts).error().text(), HasSubstr("has other parts"));
}

TEST(Statistics, TravelWithoutLoss) {
  TimeAverage average;
  average.set(Time{5}, 2);
  average.set(Time{kTicksPerUnit}, 7);
  const auto back = wire::decode<TimeAverage>(wire::encode(average).value()).value();
  EXPECT_EQ(back.mean(), average.mean());
  EXPECT_EQ(back.value(), 7);
}

TEST(Recorder, KeepsTheSeriesOfThePlanWithTheirLeastDistance) {
  Recorder recorder({.series = {"jobs", "wait"}, .every = Time{10}});
  for (std::int64_t time = 0; time < 30; time += 4) {
    recorder.record(Time{time}, LpId(1), "jobs", static_cast<double>(time));
    recorder.record(Time{time}, LpId(1), "other", 1);
  }
  recorder.record(Time{3}, LpId(2), "jobs", 3);
  std::vector<Record> records = recorder.take();
  sort_records(records);
  EXPECT_EQ(
      series_csv(records),
      "time,lp,name,value\n0,1,jobs,0.0\n0.000000003,2,jobs,3.0\n0.000000012,1,jobs,12.0\n0.000000024,1,jobs,24.0\n");
  EXPECT_THAT(recorder.missing(), ElementsAre("'wait'"));
  EXPECT_TRUE(recorder.take().empty());
}

TEST(Recorder, NamesTheNearestSeriesOfOneThatNoProcessRecords) {
  Recorder recorder({.series = {"lenght"}});
  recorder.record(Time{0}, LpId(0), "length", 1);
  EXPECT_THAT(recorder.missing(), ElementsAre(HasSubstr("did you mean 'length'?")));
}

}  // namespace
}  // namespace caftan::sim::statistics_test
