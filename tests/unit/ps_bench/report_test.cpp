// The tables, the JSON and the CSV of a measurement.
#include "ps_bench/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caftan::ps_bench::report_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Report report() {
  return {.config = {.rule = Rule::immediate, .layout = Layout::shards},
          .trainers = {{"trainer-0", {{kForward, {1, 2}}}}, {"trainer-1", {{kForward, {6}}}}},
          .servers = {{"server", {{kServerBatch, {0.5}}}}},
          .seconds = 1.5,
          .batches = 3};
}

TEST(Report, HasATableForEachWorkerAndForAll) {
  const auto lines = tables_of(report());
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_THAT(lines[0], AllOf(StartsWith("trainer-0, ms "), ContainsRegex(" count +min +max +mean +variance +stdev$")));
  EXPECT_THAT(lines[1], ContainsRegex("^  forward_metric,forward_pass +2 +1.0000 +2.0000 +1.5000 +0.5000 +0.7071$"));
  EXPECT_THAT(lines[3], ContainsRegex(" 1 +6.0000 +6.0000 +6.0000 +- +-$"));
  EXPECT_THAT(lines[4], StartsWith("all trainers, ms"));
  EXPECT_THAT(lines[5], ContainsRegex(" 3 +1.0000 +6.0000 +3.0000 +7.0000 +2.6458$"));
  EXPECT_THAT(lines[8], StartsWith("all servers, ms"));
}

TEST(Report, HasArgumentsAndFiguresAsJson) {
  EXPECT_THAT(
      json_of(report()),
      AllOf(
          HasSubstr("\"servers\": 1,\n    \"trainers\": 2,\n    \"rule\": \"immediate\",\n    \"layout\": \"shards\""),
          HasSubstr("\"bucket_bytes\": 26214400"), HasSubstr("\"sparsity\": 20"), HasSubstr("\"embedding_dim\": 1024"),
          HasSubstr("\"sparse\": true"), HasSubstr("\"seconds\": 1.5"), HasSubstr("\"batches\": 3"),
          HasSubstr("\"trainer-0\": {\n      \"forward_metric,forward_pass\": {\"count\": 2, \"min\": 1.0, \"max\": "
                    "2.0, \"mean\": 1.5, \"variance\": 0.5, \"stdev\": 0.707"),
          HasSubstr("\"trainer-1\": {\n      \"forward_metric,forward_pass\": {\"count\": 1, \"min\": 6.0, \"max\": "
                    "6.0, \"mean\": 6.0, \"variance\": null, \"stdev\": null}"),
          HasSubstr("\"all\": {\n      \"forward_metric,forward_pass\": {\"count\": 3"),
          HasSubstr("\"server\": {\n      \"parameter_server_batch_metric,param_index_batch\"")));
}

TEST(Report, HasARowForEachWorkerAndMetricAsCsv) {
  const std::string csv = csv_of(report());
  EXPECT_THAT(csv, StartsWith("role,worker,metric,count,min,max,mean,variance,stdev\n"
                              "trainer,trainer-0,\"forward_metric,forward_pass\",2,1.0,2.0,1.5,0.5,0.70"));
  EXPECT_THAT(csv, HasSubstr("\ntrainer,trainer-1,\"forward_metric,forward_pass\",1,6.0,6.0,6.0,,\n"
                             "trainer,all,\"forward_metric,forward_pass\",3,1.0,6.0,3.0,7.0,"));
  EXPECT_THAT(csv, ::testing::EndsWith("\nserver,all,\"parameter_server_batch_metric,param_index_batch\",1,0.5,0.5,"
                                       "0.5,,\n"));
}

TEST(Report, NamesRulesAsTheFileHasThem) {
  const SettingsDeclaration declaration = SettingsDeclaration::of<MasterConfig>();
  std::any made = declaration.make();
  for (const SettingField& field : declaration.bind(made)) {
    for (std::size_t i = 0; i < field.choices.size(); ++i) {
      const std::string name = field.name == "rule" ? name_of(static_cast<Rule>(i)) : name_of(static_cast<Layout>(i));
      EXPECT_EQ(name, field.choices[i].name);
    }
  }
}

}  // namespace
}  // namespace caftan::ps_bench::report_test
