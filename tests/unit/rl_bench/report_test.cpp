#include "rl_bench/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::rl_bench::report_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string report_of(std::int64_t world, bool batch = true) {
  return make_report(
      {.world_size = world, .batch = batch, .state_size = "10-20-10"},
      summarize({.agent_latency = {0.00012345}, .agent_throughput = {4432.9}, .observer_latency = {0.5}}));
}

TEST(Report, HasTheFieldsOfTheOriginal) {
  EXPECT_THAT(
      report_of(10),
      AllOf(HasSubstr("\"world_size\": 10"), HasSubstr("\"batch\": true"), HasSubstr("\"state_size\": \"10-20-10\""),
            HasSubstr("\"nlayers\": 5"), HasSubstr("\"out_features\": 10"), HasSubstr("\"benchmark_results\": ["),
            HasSubstr("\"agent latency (seconds)\": {\n        \"p50\": 0.000123,"),
            HasSubstr("\"agent throughput\": {\n        \"p50\": 4432,"),
            HasSubstr("\"observer latency (seconds)\": {\n        \"p50\": 0.5,"),
            HasSubstr("\"observer throughput\": {\n        \"p50\": 2,"), Not(HasSubstr("x_axis_name"))));
}

TEST(Report, OfASweepHasTheArgumentThatDiffersOnItsAxis) {
  const auto joined = join_reports({report_of(10), report_of(20)});
  ASSERT_TRUE(joined) << joined.error().text();
  EXPECT_THAT(*joined, HasSubstr("\"x_axis_name\": \"world_size\""));
  const std::size_t results = joined->find("benchmark_results");
  EXPECT_THAT(joined->substr(0, results), Not(HasSubstr("\"world_size\": "))) << "no constant of what varies";
  EXPECT_THAT(joined->substr(results), AllOf(HasSubstr("\"world_size\": 10"), HasSubstr("\"world_size\": 20")));
  const auto table = table_of(*joined);
  ASSERT_TRUE(table);
  EXPECT_THAT(*table, ::testing::Contains(HasSubstr("world_size  agent latency (seconds)")));
  EXPECT_THAT(table->back(), AllOf(::testing::StartsWith("20  "), HasSubstr("0.000123"), HasSubstr("4432")));
}

TEST(Report, TakesExactlyOneArgumentThatDiffers) {
  const auto none = join_reports({report_of(10), report_of(10)});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Errc::bad_arguments);
  EXPECT_THAT(none.error().message(), HasSubstr("differ in none"));
  const auto two = join_reports({report_of(10), report_of(20, false)});
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message(), HasSubstr("differ in 2 (world_size, batch)"));
}

TEST(Report, RefusesWhatIsNone) {
  EXPECT_EQ(join_reports({}).error().code(), Errc::bad_arguments);
  const std::string whole = report_of(20);
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"benchmark_results": [{}]})"),
        whole.substr(0, whole.size() / 2), *join_reports({report_of(10), report_of(20)})}) {
    const auto joined = join_reports({report_of(10), text});
    ASSERT_FALSE(joined) << text;
    EXPECT_THAT(joined.error().message(), HasSubstr("report 2 is damaged"));
  }
  EXPECT_FALSE(table_of("{}"));
}

}  // namespace
}  // namespace caftan::rl_bench::report_test
