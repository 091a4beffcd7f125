// The numbers of a simulation's live line and last report, and the differences between configs of checkpoints.
#include "sim/clock_meter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "folder.hpp"
#include "sim/simulation_checkpoint.hpp"

namespace caftan::actors::clock_meter_test {
namespace {

using namespace std::chrono_literals;
using sim::Time;
using ::testing::HasSubstr;

Time units(double value) { return sim::time_of(value).value(); }

TEST(ClockMeter, LambdaIsTheTimeOfOneLookaheadsEventsOverThatOfAnExchange) {
  ClockMeter meter(2, units(2), units(0), units(100));
  sim::BorderReport sums;
  sums.border = units(10);
  sums.counters.handled = 1000;
  sums.windows = 5;
  // 10 units kept the partitions busy for 20 ms: 4 ms for a lookahead of 2. The busier one waited 1 ms in each of 5
  // windows.
  meter.on_border(sums, {{5, 12ms, 5ms}, {5, 8ms, 9ms}}, 17ms);
  EXPECT_DOUBLE_EQ(meter.lambda(), 4.0);
  EXPECT_DOUBLE_EQ(meter.events_per_window(), 200);
  EXPECT_DOUBLE_EQ(meter.waiting(), 14.0 / 34.0);
  EXPECT_THAT(meter.line(), HasSubstr("t 10 of 100  58.8 k events/s  window 200 events  waiting 41 %  lambda 4"));
}

TEST(ClockMeter, OfAResumedRunOnlyItsOwnEventsCount) {
  ClockMeter meter(1, sim::kNever, units(50), units(100), 700);
  sim::BorderReport sums;
  sums.border = units(60);
  sums.counters.handled = 1000;
  meter.on_border(sums, {{0, 1s, 0s}}, 1s);
  EXPECT_EQ(meter.handled(), 300U);
  EXPECT_DOUBLE_EQ(meter.events_per_s(), 300);
  EXPECT_EQ(meter.lambda(), 0);
}

TEST(ClockMeter, SaysWhichLookaheadWasPossible) {
  ClockMeter meter(2, units(1), units(0), units(10));
  sim::BorderReport sums;
  sums.border = units(10);
  sums.least_delay = units(1.5);
  meter.on_border(sums, {{}, {}}, 1s);
  EXPECT_THAT(meter.report().back(), HasSubstr("the lookahead could be 1.5 instead of 1"));
}

TEST(SimulationCheckpoint, TheFirstDifferenceOfConfigsIsNamed) {
  const std::string one = "mean = 1.0\nwork = \"0s\"\n\n[inner]\nsize = 3\n";
  EXPECT_EQ(config_difference(one, one, {}), "");
  const std::string other = "mean = 2.0\nwork = \"1s\"\n\n[inner]\nsize = 4\n";
  EXPECT_EQ(config_difference(one, other, {}), "inner.size = 3, the checkpoint has 4");
  EXPECT_EQ(config_difference(one, other, {"inner.size"}), "mean = 1.0, the checkpoint has 2.0");
  EXPECT_EQ(config_difference(one, other, {"inner.size", "mean", "work"}), "");
}

TEST(SimulationCheckpoint, SM14_AWarmUpThatTheStatisticsCannotHaveAnyMoreIsNamed) {
  const SimulationManifest manifest{.border = sim::Time{1500}, .counted_from = sim::Time{200}};
  EXPECT_EQ(warmup_difference(manifest, sim::Time{200}), "");
  EXPECT_EQ(warmup_difference(manifest, sim::Time{1501}), "") << "it ends behind the checkpoint";
  for (const std::int64_t other : {0, 199, 201, 1500}) EXPECT_NE(warmup_difference(manifest, sim::Time{other}), "");
}

TEST(SimulationCheckpoint, SM15_AFolderWithoutAManifestIsNone) {
  const test::Folder folder;
  for (const std::int64_t step : {1, 2, 3}) {
    const auto path = checkpoint_folder(folder.path(), step);
    ASSERT_TRUE(make_checkpoint_folder(path));
    std::filesystem::create_directories(path);
    std::ofstream(path / "partition-0") << "x";
    if (step == 3) continue;
    ASSERT_TRUE(finish_checkpoint(path, {.seed = 5, .border = Time{step}, .partitions = 1}, 1));
  }
  const auto found = find_simulation_checkpoint(folder.path());
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found->manifest.border, Time{2});
  EXPECT_EQ(found->files().size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_folder(folder.path(), 1))) << "only the newest one is kept";
  std::filesystem::remove(found->files().front());
  EXPECT_THAT(find_simulation_checkpoint(folder.path()).error().text(), HasSubstr("partition-0: it is missing"));
  EXPECT_THAT(find_simulation_checkpoint(folder.path() / "none").error().text(),
              HasSubstr("there is no whole checkpoint"));
}

}  // namespace
}  // namespace caftan::actors::clock_meter_test
