// The runs of a sweep, what its folder remembers, and its table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "caftan/app/internal/student.hpp"
#include "caftan/app/internal/summary.hpp"
#include "caftan/app/internal/sweep_plan.hpp"
#include "caftan/app/internal/sweep_table.hpp"

namespace caftan::app::sweep_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

SweepPlan plan_of(const Words& assignments) { return SweepPlan::parse(assignments).value(); }

std::string refusal_of(const Words& assignments) { return SweepPlan::parse(assignments).error().text(); }

TEST(SweepPlan, CombinesAllValuesTheLastKeyFirst) {
  const SweepPlan plan = plan_of({"run.seed=1..2", "x=a,b,c", "y=7"});
  ASSERT_EQ(plan.runs(), 6U);
  EXPECT_THAT(plan.overrides_of(0), ElementsAre("run.seed=1", "x=a", "y=7"));
  EXPECT_THAT(plan.overrides_of(2), ElementsAre("run.seed=1", "x=c", "y=7"));
  EXPECT_THAT(plan.overrides_of(3), ElementsAre("run.seed=2", "x=a", "y=7"));
  EXPECT_EQ(plan.describe(5), "run.seed=2 x=c");
}

TEST(SweepPlan, RangesIncludeBothEndsAndMayStandInLists) {
  EXPECT_THAT(plan_of({"x=-1..1"}).axes().front().values, ElementsAre("-1", "0", "1"));
  EXPECT_THAT(plan_of({"x=1..2,8"}).axes().front().values, ElementsAre("1", "2", "8"));
  EXPECT_THAT(plan_of({"x=5..5"}).axes().front().values, ElementsAre("5"));
  EXPECT_THAT(plan_of({"x=../data,1.5..2"}).axes().front().values, ElementsAre("../data", "1.5..2"));
}

TEST(SweepPlan, CommasInQuotesAndBracketsBelongToAValue) {
  EXPECT_THAT(plan_of({R"(x="a,b",'c,"d',"e\",f")"}).axes().front().values,
              ElementsAre(R"("a,b")", R"('c,"d')", R"("e\",f")"));
  EXPECT_THAT(plan_of({"x=[1, [2,3]],{a=1,b=2}"}).axes().front().values, ElementsAre("[1, [2,3]]", "{a=1,b=2}"));
}

TEST(SweepPlan, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal_of({"x"}), HasSubstr("x: is no KEY=VALUES"));
  EXPECT_THAT(refusal_of({"=1"}), HasSubstr("is no KEY=VALUES"));
  EXPECT_THAT(refusal_of({"x=1,,2"}), HasSubstr("a value is empty"));
  EXPECT_THAT(refusal_of({"x="}), HasSubstr("a value is empty"));
  EXPECT_THAT(refusal_of({"x=\"a,b"}), HasSubstr("a quote or a bracket is not closed"));
  EXPECT_THAT(refusal_of({"x=[1,2"}), HasSubstr("a quote or a bracket is not closed"));
  EXPECT_THAT(refusal_of({"x=1]"}), HasSubstr("a ']' closes no bracket"));
  EXPECT_THAT(refusal_of({"x=3..1"}), HasSubstr("3..1 counts down"));
  EXPECT_THAT(refusal_of({"x=1..3,2"}), HasSubstr("the value 2 stands there twice"));
  EXPECT_THAT(refusal_of({"x=1", "x=2"}), HasSubstr("the key stands there twice"));
  EXPECT_EQ(refusal_of({"x=1..101", "y=1..100"}), "a sweep has no more than 10000 runs");
  EXPECT_THAT(refusal_of({"x=-9223372036854775808..9223372036854775807"}), HasSubstr("no more than 10000 runs"));
}

TEST(SweepState, RemembersWhichRunsHaveSucceeded) {
  const SweepPlan plan = plan_of({"run.seed=1..2", "x=\"a,b\",c"});
  SweepState state("12ab", plan);
  EXPECT_THAT(state.left(), ElementsAre(0U, 1U, 2U, 3U));
  state.set_succeeded(0);
  state.set_succeeded(3);
  state.set_failed(2);
  const SweepState again = SweepState::parse(state.text(), "12ab", plan).value();
  EXPECT_THAT(again.left(), ElementsAre(1U, 2U));
  EXPECT_THAT(again.failed(), ElementsAre(2U));
  EXPECT_TRUE(again.has_succeeded(3));
  state.set_open(3);
  EXPECT_THAT(state.left(), ElementsAre(1U, 2U, 3U));
}

TEST(SweepState, RefusesThatOfAnotherFileOrOfOtherKeys) {
  const SweepPlan plan = plan_of({"x=1..2"});
  const std::string text = SweepState("12ab", plan).text();
  EXPECT_THAT(SweepState::parse(text, "34cd", plan).error().text(),
              HasSubstr("was changed since (digest 12ab, now 34cd)"));
  EXPECT_THAT(SweepState::parse(text, "12ab", plan_of({"x=1..3"})).error().text(),
              HasSubstr("it was begun with x=1,2, now they are x=1,2,3"));
  EXPECT_THAT(SweepState::parse("digest = 1\n", "12ab", plan).error().text(), HasSubstr("sweep.toml:"));
  EXPECT_THAT(SweepState::parse("nonsense", "12ab", plan).error().text(), HasSubstr("sweep.toml:"));
  std::string beyond = text;
  beyond.replace(beyond.find("succeeded = []"), 14, "succeeded = [3]");
  EXPECT_EQ(SweepState::parse(beyond, "12ab", plan).error().text(), "sweep.toml names a run 3 of 2");
}

TEST(SweepState, RunsHaveNamesThatSort) {
  EXPECT_EQ(sweep_run_name(0, 4), "001");
  EXPECT_EQ(sweep_run_name(41, 1000), "0042");
}

TEST(SweepState, TheTimeThatIsLeftFollowsTheRunsThatEnded) {
  EXPECT_EQ(sweep_time_left(20s, 2, 3, 20s), 30s);
  EXPECT_EQ(sweep_time_left(20s, 2, 3, 24s), 26s);
  EXPECT_EQ(sweep_time_left(20s, 2, 1, 60s), 0s);
}

TEST(Student, HasTheQuantilesOfTheTables) {
  constexpr std::array<double, 30> kUpTo30{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                           2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                           2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  for (std::size_t i = 0; i < kUpTo30.size(); ++i) EXPECT_NEAR(student_quantile_95(i + 1), kUpTo30[i], 5e-4) << i + 1;
  EXPECT_NEAR(student_quantile_95(40), 2.021, 5e-4);
  EXPECT_NEAR(student_quantile_95(60), 2.000, 5e-4);
  EXPECT_NEAR(student_quantile_95(120), 1.980, 5e-4);
  EXPECT_NEAR(student_quantile_95(100'000), 1.959964, 5e-5);
}

TEST(Student, OneValueHasNoInterval) {
  EXPECT_EQ(estimate_mean({}).count, 0U);
  const std::array<double, 1> one{2.5};
  EXPECT_EQ(estimate_mean(one).mean, 2.5);
  EXPECT_FALSE(estimate_mean(one).half);
}

TEST(Student, TheIntervalOfAFewValues) {
  const std::array<double, 3> values{1, 2, 3};
  EXPECT_EQ(estimate_mean(values).mean, 2);
  EXPECT_NEAR(estimate_mean(values).half.value(), 2.484138, 1e-6);
  const std::array<double, 3> equal{0.1, 0.1, 0.1};
  EXPECT_EQ(estimate_mean(equal).mean, 0.1);
  EXPECT_EQ(estimate_mean(equal).half.value(), 0);
}

TEST(SweepTable, HasARowForEachCombinationAndSeedsAreRepetitions) {
  const SweepPlan plan = plan_of({"x=a,\"b,c\"", "run.seed=1..3"});
  const std::vector<SweepResult> results{{0, {{"driver.sum", 1}, {"driver.loss", 0.5}}},
                                         {1, {{"driver.sum", 2}, {"driver.loss", 0.5}}},
                                         {2, {{"driver.sum", 3}}},
                                         {4, {{"driver.sum", 8}}}};
  const SweepTable table = make_sweep_table(plan, results, {}).value();
  EXPECT_THAT(sweep_lines(table), ElementsAre("x      n  driver.loss   driver.sum", "a      3  0.5 +- 0 (2)  2 +- 2.48",
                                              "\"b,c\"  1  -             8"));
  EXPECT_THAT(sweep_csv(make_sweep_table(plan, results, "sum").value()),
              StartsWith("x,n,missed,driver.sum.n,driver.sum.mean,driver.sum.half\n"));
  EXPECT_THAT(sweep_csv(table), HasSubstr("\n\"\"\"b,c\"\"\",1,0,0,,,1,8.0,\n"));
}

TEST(SweepTable, HasTheRunsThatMissedTheirGoalAndCountsThem) {
  const SweepPlan plan = plan_of({"x=a,b", "run.seed=1..2"});
  const std::vector<SweepResult> results{{.run = 0, .metrics = {{"driver.sum", 1}}},
                                         {.run = 1, .metrics = {{"driver.sum", 3}}, .has_missed_goal = true},
                                         {.run = 2, .metrics = {{"driver.sum", 4}}, .has_missed_goal = true}};
  const SweepTable table = make_sweep_table(plan, results, "sum").value();
  EXPECT_THAT(sweep_lines(table),
              ElementsAre("x  n  missed  driver.sum", "a  2  1       2 +- 12.7", "b  1  1       4"));
  EXPECT_THAT(sweep_csv(table), HasSubstr("\nb,1,1,1,4.0,\n"));
}

TEST(SweepTable, ListsTheMetricsWhereOneIsMissing) {
  const SweepPlan plan = plan_of({"run.seed=1..2"});
  const std::vector<SweepResult> results{{0, {{"a.x", 1}, {"b.x", 2}}}};
  EXPECT_THAT(make_sweep_table(plan, results, "x").value().metrics, ElementsAre("a.x", "b.x"));
  EXPECT_THAT(make_sweep_table(plan, results, "b.x").value().metrics, ElementsAre("b.x"));
  EXPECT_EQ(make_sweep_table(plan, results, "y").error().text(), "no run has a metric 'y'; there are: a.x, b.x");
  const std::vector<SweepResult> other{{0, {{"agent.reward", 1}}}};
  EXPECT_EQ(make_sweep_table(plan, other, "rewrad").error().text(),
            "no run has a metric 'rewrad'; did you mean 'reward'? There are: agent.reward");
  EXPECT_THAT(make_sweep_table(plan, {}, "y").value().metrics, IsEmpty());
}

TEST(Summary, ItsMetricsAndItsErrorReadBack) {
  const RunSummary summary{.error = "a: too little",
                           .error_code = "goal_missed",
                           .metrics = {{"a.x", 0.1}, {"a.y", std::numeric_limits<double>::quiet_NaN()}}};
  const RunSummary read = read_summary(summary_text(summary)).value();
  EXPECT_EQ(read.metrics.at("a.x"), 0.1);
  EXPECT_TRUE(std::isnan(read.metrics.at("a.y")));
  EXPECT_EQ(read.error, "a: too little");
  EXPECT_EQ(read.error_code, "goal_missed");
  EXPECT_EQ(read_summary("{").error().code(), Errc::malformed_payload);
  EXPECT_EQ(read_summary("{\"metrics\": {\"a\": \"b\"}}").error().code(), Errc::malformed_payload);
  EXPECT_EQ(read_summary("{\"metrics\": {}, \"error_code\": 1}").error().code(), Errc::malformed_payload);
}

}  // namespace
}  // namespace caftan::app::sweep_test
