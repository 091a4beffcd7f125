// Windows, promises and grants by numbers (SM-6, SM-7, SM-8, SM-16), and times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caftan/sim/internal/grant_rule.hpp"
#include "caftan/sim/internal/promise_rule.hpp"
#include "caftan/sim/internal/window_rule.hpp"

namespace caftan::sim::rules_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(SimTime, IsACountOfTicks) {
  EXPECT_EQ(time_of(1.5).value(), Time{1'500'000'000});
  EXPECT_EQ(time_of(0.1).value().ticks * 3, time_of(0.3).value().ticks);
  EXPECT_EQ(time_of(0.4e-9).value(), Time{0});
  EXPECT_EQ(time_of(0.6e-9).value(), Time{1});
  EXPECT_EQ(to_string(Time{1'500'000'000}), "1.5");
  EXPECT_EQ(to_string(Time{1}), "0.000000001");
  EXPECT_EQ(to_string(Time{-1'500'000'000}), "-1.5");
  EXPECT_EQ(to_string(kNever), "never");
  EXPECT_EQ(later(Time{kNever.ticks - 1}, Time{1}), kNever);
  EXPECT_EQ(later(Time{kNever.ticks - 1}, Time{2}), kNever);
  EXPECT_EQ(later(Time{3}, Time{4}), Time{7});
}

TEST(SimTime, SM17_OfWhatIsNoTimeIsAnError) {
  EXPECT_THAT(time_of(-0.5).error().text(), HasSubstr("is negative"));
  EXPECT_THAT(time_of(std::nan("")).error().text(), HasSubstr("is not a number"));
  EXPECT_THAT(time_of(1e10).error().text(), HasSubstr("is beyond 2^63 ticks"));
}

TEST(WindowRule, SM6_BoundsFollowFromTheLeastTimesOfAll) {
  WindowRule rule(0, 3, Time{10});
  rule.grant(Time{1000});
  EXPECT_TRUE(rule.on_report(0, {Time{50}, {kNever, kNever, kNever}}));
  EXPECT_FALSE(rule.is_complete());
  EXPECT_TRUE(rule.on_report(1, {Time{80}, {kNever, kNever, Time{57}}}));
  EXPECT_TRUE(rule.has_reported(1));
  EXPECT_FALSE(rule.has_reported(2));
  EXPECT_TRUE(rule.on_report(2, {Time{90}, {kNever, kNever, kNever}}));
  ASSERT_TRUE(rule.is_complete());
  // What partition 1 has sent to partition 2 counts there.
  EXPECT_EQ(rule.earliest(1), Time{80});
  EXPECT_EQ(rule.earliest(2), Time{57});
  EXPECT_FALSE(rule.is_at_border());
  EXPECT_EQ(rule.bound(), Time{67});
}

TEST(WindowRule, SM6_AnOwnEventComesBackAfterTwoLookaheads) {
  WindowRule rule(0, 2, Time{10});
  rule.grant(Time{1000});
  rule.on_report(0, {Time{50}, {kNever, kNever}});
  rule.on_report(1, {kNever, {kNever, kNever}});
  EXPECT_EQ(rule.bound(), Time{70});
  rule.grant(Time{60});
  EXPECT_EQ(rule.bound(), Time{60});
  rule.grant(Time{50});
  EXPECT_TRUE(rule.is_at_border());
}

TEST(WindowRule, SM6_WithoutOthersOrLookaheadTheGrantIsTheBound) {
  WindowRule alone(0, 1, Time{10});
  alone.grant(Time{500});
  alone.on_report(0, {Time{3}, {kNever}});
  EXPECT_EQ(alone.bound(), Time{500});
  WindowRule apart(1, 2, kNever);
  apart.grant(Time{500});
  apart.on_report(0, {Time{3}, {kNever, kNever}});
  apart.on_report(1, {Time{4}, {kNever, kNever}});
  EXPECT_EQ(apart.bound(), Time{500});
}

TEST(WindowRule, SM5_ASecondReportOrOneOfWrongLengthIsRefused) {
  WindowRule rule(0, 2, Time{10});
  EXPECT_FALSE(rule.on_report(1, {Time{1}, {kNever}}));
  EXPECT_TRUE(rule.on_report(1, {Time{1}, {kNever, kNever}}));
  EXPECT_FALSE(rule.on_report(1, {Time{1}, {kNever, kNever}}));
  EXPECT_TRUE(rule.on_report(0, {Time{1}, {kNever, kNever}}));
  rule.begin_round();
  EXPECT_EQ(rule.round(), 1);
  EXPECT_FALSE(rule.is_complete());
}

TEST(PromiseRule, SM7_APromiseIsTheLeastOfAllAndALookahead) {
  PromiseRule rule(0, 3, Time{10});
  rule.grant(Time{100});
  EXPECT_EQ(rule.bound(), Time{0});
  EXPECT_EQ(rule.promise(Time{40}), Time{10});
  EXPECT_TRUE(rule.on_promise(1, Time{30}, Time{-1}));
  EXPECT_TRUE(rule.on_promise(2, Time{35}, Time{-1}));
  EXPECT_EQ(rule.bound(), Time{30});
  EXPECT_TRUE(rule.waits_for(1));
  EXPECT_FALSE(rule.waits_for(2));
  EXPECT_EQ(rule.promise(Time{40}), Time{40});
  EXPECT_EQ(rule.promise(Time{20}), Time{30});
  EXPECT_FALSE(rule.on_promise(1, Time{29}, Time{-1}));
  EXPECT_FALSE(rule.may_reach(Time{100}));
  EXPECT_TRUE(rule.on_promise(1, Time{110}, Time{100}));
  EXPECT_TRUE(rule.on_promise(2, Time{120}, Time{-1}));
  EXPECT_EQ(rule.bound(), Time{100});
  EXPECT_FALSE(rule.may_reach(Time{99}));
  EXPECT_TRUE(rule.may_reach(Time{100}));
  rule.on_reached();
  EXPECT_FALSE(rule.is_at_border());
  EXPECT_TRUE(rule.waits_for(2));
  EXPECT_TRUE(rule.on_promise(2, Time{120}, Time{100}));
  EXPECT_TRUE(rule.is_at_border());
}

BorderReport report_of(Time border, std::uint64_t sent, std::uint64_t handled, std::uint64_t pending, Time next) {
  return {.border = border, .counters = {.sent = sent, .handled = handled}, .pending = pending, .next = next};
}

TEST(GrantRule, GrantsCheckpointsWarmUpPausesAndTheEndInTheirOrder) {
  GrantRule rule = GrantRule::make({.end_time = 10, .checkpoint_every = 4, .warmup = 3, .pause_at = {9, 4}}, 1).value();
  std::string seen;
  while (const auto grant = rule.next({})) {
    seen += to_string(grant->border) + (grant->ends_warmup ? "w" : "") + (grant->saves ? "s" : "") +
            (grant->pauses ? "p" : "") + (grant->ends ? "e" : "") + " ";
    rule.on_granted(*grant);
    ASSERT_TRUE(rule.on_report(0, report_of(grant->border, 1, 0, 1, Time{100 * kTicksPerUnit})));
  }
  EXPECT_EQ(seen, "3w 4sp 8s 9p 10e ");
  EXPECT_TRUE(rule.is_over());
}

TEST(GrantRule, SM15_AResumedRunSavesAtTheSameBorders) {
  const GrantRule rule =
      GrantRule::make({.end_time = 10, .checkpoint_every = 4, .warmup = 3}, 1, Time{5 * kTicksPerUnit}).value();
  EXPECT_EQ(rule.next({})->border, Time{8 * kTicksPerUnit});
  EXPECT_THAT(GrantRule::make({.end_time = 5}, 1, Time{5 * kTicksPerUnit}).error().text(),
              HasSubstr("checkpoint is at 5 already"));
}

TEST(GrantRule, SM8_TheEndThatAProcessAskedForEndsTheRun) {
  GrantRule rule = GrantRule::make({.end_time = 10}, 1).value();
  rule.on_granted(*rule.next({}));
  BorderReport report = report_of(Time{7 * kTicksPerUnit}, 1, 0, 1, Time{8 * kTicksPerUnit});
  report.finish = report.border;
  ASSERT_TRUE(rule.on_report(0, report));
  EXPECT_TRUE(rule.is_over());
  EXPECT_EQ(rule.end(), Time{7 * kTicksPerUnit});
}

TEST(GrantRule, SM4_PartitionsThatDoNotAddUpEndTheRun) {
  GrantRule rule = GrantRule::make({.end_time = 10}, 2).value();
  const auto grant = *rule.next({});
  rule.on_granted(grant);
  EXPECT_TRUE(rule.on_report(0, report_of(grant.border, 5, 3, 0, kNever)));
  const auto done = rule.on_report(1, report_of(grant.border, 2, 2, 1, kNever));
  EXPECT_THAT(done.error().text(), HasSubstr("sent 7 events, but handled 5"));
  EXPECT_THAT(rule.on_report(1, report_of(grant.border, 2, 2, 1, kNever)).error().text(), HasSubstr("not asked for"));
}

TEST(GrantRule, SM16_RealTimeIsDueFromTheStartAndLatenessIsMadeUp) {
  GrantRule rule = GrantRule::make({.end_time = 20, .real_time = 10}, 1).value();
  EXPECT_EQ(rule.next(0ns), std::nullopt);
  EXPECT_EQ(rule.next(100ms)->border, Time{kTicksPerUnit});
  rule.on_granted(*rule.next(100ms));
  EXPECT_EQ(rule.next(100ms), std::nullopt);
  EXPECT_EQ(rule.lateness(400ms), Time{3 * kTicksPerUnit});
  EXPECT_EQ(rule.next(400ms)->border, Time{4 * kTicksPerUnit});
  EXPECT_EQ(rule.next(1h)->border, Time{20 * kTicksPerUnit});
  rule.on_granted(*rule.next(1h));
  EXPECT_EQ(rule.lateness(1h), Time{});
}

TEST(GrantRule, SM16_AStepIsOneDistinctTimeAndThenAPause) {
  GrantRule rule = GrantRule::make({.end_time = 20}, 1).value();
  rule.on_granted({.border = Time{5}});
  ASSERT_TRUE(rule.on_report(0, report_of(Time{5}, 1, 0, 1, Time{9})));
  rule.step_next();
  const auto grant = *rule.next({});
  EXPECT_EQ(grant.border, Time{10});
  EXPECT_TRUE(grant.pauses);
  rule.on_granted(grant);
  EXPECT_FALSE(rule.next({})->pauses);
  rule.pause_next();
  EXPECT_TRUE(rule.next({})->pauses);
}

TEST(GrantRule, TimesThatCannotBeNameTheirKey) {
  const auto refused = [](const GrantOptions& options) { return GrantRule::make(options, 1).error().text(); };
  EXPECT_THAT(refused({.end_time = 0}), HasSubstr("end_time = 0.0: it must be more than 0"));
  EXPECT_THAT(refused({.end_time = std::nan("")}), HasSubstr("end_time"));
  EXPECT_THAT(refused({.end_time = 1e300}), HasSubstr("beyond 2^63 ticks"));
  EXPECT_THAT(refused({.end_time = 1, .checkpoint_every = -1}), HasSubstr("checkpoint.every"));
  EXPECT_THAT(refused({.end_time = 1, .checkpoint_every = 1e-12}), HasSubstr("less than one tick"));
  EXPECT_THAT(refused({.end_time = 1, .warmup = 1}), HasSubstr("warmup = 1.0: it is not before end_time"));
  EXPECT_THAT(refused({.end_time = 1, .pause_at = {2}}), HasSubstr("pause_at"));
  EXPECT_THAT(refused({.end_time = 1, .real_time = -1}), HasSubstr("real_time"));
}

}  // namespace
}  // namespace caftan::sim::rules_test
