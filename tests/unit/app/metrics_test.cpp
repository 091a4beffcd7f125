#include "caftan/app/internal/metrics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "file_limit.hpp"

namespace caftan::app::metrics_test {
namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

class Metrics : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "caftan_metrics_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(Metrics, BothFilesHoldEachRowAsSoonAsItIsWritten) {
  MetricsWriter writer = MetricsWriter::create(folder_).value();
  EXPECT_EQ(read(folder_ / "metrics.csv"), "time_s,worker,metric,count,last,mean,min,max\r\n");
  const std::vector<MetricRow> rows{
      {.time_s = 0.5, .worker = "agent", .metric = "reward", .count = 2, .last = 3, .mean = 2, .min = 1, .max = 3},
      {.time_s = 1,
       .worker = "a,\"b\"\n",
       .metric = "loss",
       .count = 1,
       .last = std::numeric_limits<double>::quiet_NaN(),
       .mean = std::numeric_limits<double>::infinity(),
       .min = -0.1,
       .max = 1e300}};
  writer.write(rows).value();
  EXPECT_EQ(read(folder_ / "metrics.csv"),
            "time_s,worker,metric,count,last,mean,min,max\r\n"
            "0.5,agent,reward,2,3,2,1,3\r\n"
            "1,\"a,\"\"b\"\"\n\",loss,1,nan,inf,-0.1,1e+300\r\n");
  EXPECT_EQ(read(folder_ / "metrics.jsonl"),
            "{\"time_s\":0.5,\"worker\":\"agent\",\"metric\":\"reward\",\"count\":2,\"last\":3,\"mean\":2,\"min\":1,"
            "\"max\":3}\n"
            "{\"time_s\":1,\"worker\":\"a,\\\"b\\\"\\u000a\",\"metric\":\"loss\",\"count\":1,\"last\":null,\"mean\":"
            "null,\"min\":-0.1,\"max\":1e+300}\n");
}

TEST_F(Metrics, K12_RN11_OfALineThatFindsNoRoomNothingIsWritten) {
  MetricsWriter writer = MetricsWriter::create(folder_).value();
  const std::vector<MetricRow> row{{.time_s = 0.5, .worker = "agent", .metric = "reward", .count = 1}};
  writer.write(row).value();
  const std::string jsonl = read(folder_ / "metrics.jsonl");
  Result<void> written;
  {
    const test::FileLimit full(jsonl.size() + 10);
    written = writer.write(row);
  }
  EXPECT_EQ(written.error().code(), Errc::io_error);
  EXPECT_EQ(written.error().text(), (folder_ / "metrics.jsonl").string() + ": File too large");
  EXPECT_EQ(read(folder_ / "metrics.jsonl"), jsonl);
  writer.write(row).value();  // there is room again
  EXPECT_EQ(read(folder_ / "metrics.jsonl"), jsonl + jsonl);
}

TEST_F(Metrics, AnExistingFileIsNotOverwritten) {
  MetricsWriter::create(folder_).value();
  EXPECT_EQ(MetricsWriter::create(folder_).error().code(), Errc::io_error);
  EXPECT_EQ(MetricsWriter::create(folder_ / "none").error().code(), Errc::io_error);
}

TEST(MetricTable, GathersPerWorkerAndNameUntilDrained) {
  MetricTable table;
  table.add("observer-0", "steps", 10);
  table.add("agent", "reward", 3);
  table.add("agent", "reward", 1);
  const std::vector<MetricRow> rows = table.drain(2.5);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].worker, "agent");
  EXPECT_EQ(rows[0].count, 2U);
  EXPECT_EQ(rows[0].last, 1);
  EXPECT_EQ(rows[0].mean, 2);
  EXPECT_EQ(rows[0].min, 1);
  EXPECT_EQ(rows[0].max, 3);
  EXPECT_EQ(rows[0].time_s, 2.5);
  EXPECT_TRUE(table.drain(3).empty());
  table.add("agent", "reward", -7);
  EXPECT_EQ(table.drain(4).front().max, -7) << "a new row starts from nothing";
  EXPECT_EQ(table.last().at({"observer-0", "steps"}), 10);
}

}  // namespace
}  // namespace caftan::app::metrics_test
