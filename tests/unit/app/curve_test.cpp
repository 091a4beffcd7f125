#include "caftan/app/internal/curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "folder.hpp"

namespace caftan::app::curve_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::string kHeading = "step,name,value\r\n";

class CurveFile : public ::testing::Test {
 protected:
  /// Returns the error of a file with this text; "none" if all of its rows can be read.
  std::string error_of(const std::string& text) const {
    auto reader = CurveReader::open(folder_.write("bad.csv", text));
    if (!reader) return reader.error().text();
    for (;;) {
      const auto row = reader->next();
      if (!row) return row.error().text();
      if (!*row) return "none";
    }
  }
  std::string ordered(const std::string& rows, std::size_t rows_at_once) const {
    order_curve(folder_.write("curve.csv", kHeading + rows), rows_at_once).value();
    return folder_.read("curve.csv");
  }
  const test::Folder folder_;
};

TEST_F(CurveFile, HasWhatWasWrittenBeforeItIsOrdered) {
  CurveWriter writer(folder_.path());
  writer.write().value();
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / kCurveFile)) << "no row, no file";
  writer.add("b", "loss", 2, 0.1);
  writer.write().value();
  writer.add("a", "loss", 2, 1e300);
  writer.add("a", "loss", 1, -0.25);
  writer.write().value();
  EXPECT_EQ(folder_.read("curve.csv"), kHeading + "2,b.loss,0.1\r\n2,a.loss,1e+300\r\n1,a.loss,-0.25\r\n");
  writer.finish().value();
  EXPECT_EQ(folder_.read("curve.csv"), kHeading + "1,a.loss,-0.25\r\n2,a.loss,1e+300\r\n2,b.loss,0.1\r\n");
  EXPECT_EQ(writer.rows(), 3U);
}

TEST_F(CurveFile, IsTheSameInWhicheverOrderTheWorkersReport) {
  const auto write = [](const std::filesystem::path& folder, const std::vector<const char*>& workers) {
    std::filesystem::create_directory(folder);
    CurveWriter writer(folder);
    for (const char* const worker : workers) {
      for (int step = 3; step > 0; --step) writer.add(worker, "reward", step, step);
    }
    writer.finish().value();
  };
  write(folder_.path() / "one", {"a", "b", "c"});
  write(folder_.path() / "two", {"c", "a", "b"});
  EXPECT_EQ(folder_.read("one/curve.csv"), folder_.read("two/curve.csv"));
  EXPECT_THAT(folder_.read("one/curve.csv"), HasSubstr("\n1,a.reward,1\r\n1,b.reward,1\r\n1,c.reward,1\r\n2,a."));
}

TEST_F(CurveFile, KeepsRepeatedStepsInTheirOrderAndWhatIsNotFinite) {
  CurveWriter writer(folder_.path());
  writer.add("a", "x", -7, 1);
  for (const double value : {3.0, -kNan, kInfinity, 2.0, -kInfinity}) writer.add("a", "x", -8, value);
  writer.finish().value();
  EXPECT_EQ(folder_.read("curve.csv"),
            kHeading + "-8,a.x,3\r\n-8,a.x,nan\r\n-8,a.x,inf\r\n-8,a.x,2\r\n-8,a.x,-inf\r\n-7,a.x,1\r\n");
}

TEST_F(CurveFile, NamesOfAnyBytesAndNumbersReadBackBitForBit) {
  const std::string name = "a,\"b\"\r\nc";
  CurveWriter writer(folder_.path());
  writer.add("w", name, std::numeric_limits<std::int64_t>::min(), 1.0 / 3);
  writer.add("w", name, std::numeric_limits<std::int64_t>::max(), 5e-324);
  writer.finish().value();
  CurveReader reader = CurveReader::open(folder_.path() / kCurveFile).value();
  const auto first = reader.next().value();
  const auto second = reader.next().value();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->name, "w." + name);
  EXPECT_EQ(first->step, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(first->value, 1.0 / 3);
  EXPECT_EQ(second->step, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(second->value, 5e-324);
  EXPECT_FALSE(reader.next().value());
}

TEST_F(CurveFile, IsOrderedInPartsAsInOnePiece) {
  std::string rows;
  for (int i = 0; i < 100; ++i) {
    rows += std::to_string(i * 37 % 10) + ",a." + std::to_string(i % 3) + "," + std::to_string(i) + "\r\n";
  }
  const std::string whole = ordered(rows, 1000);
  for (const std::size_t at_once : {1, 7, 50, 99, 100, 101}) EXPECT_EQ(ordered(rows, at_once), whole) << at_once;
  EXPECT_EQ(std::ranges::count(whole, '\n'), 101);
  EXPECT_EQ(ordered("", 10), kHeading);
  const auto files = std::filesystem::directory_iterator(folder_.path());
  EXPECT_EQ(std::distance(files, std::filesystem::directory_iterator()), 1) << "no part is left";
}

TEST_F(CurveFile, WritesByItselfBeforeMuchWaits) {
  CurveWriter writer(folder_.path());
  for (int step = 0; step < 10'000; ++step) writer.add("worker", "metric", step, 0.5);
  EXPECT_GT(folder_.read("curve.csv").size(), 2 * CurveWriter::kMostWaiting);
}

TEST_F(CurveFile, AnErrorIsKeptAndCostsNoRowThatWasWritten) {
  folder_.write("curve.csv", "mine");
  CurveWriter writer(folder_.path());
  writer.add("a", "x", 1, 1);
  EXPECT_EQ(writer.write().error().code(), Errc::io_error);
  writer.add("a", "x", 2, 1);
  EXPECT_EQ(writer.finish().error().code(), Errc::io_error);
  EXPECT_EQ(folder_.read("curve.csv"), "mine");
}

TEST_F(CurveFile, AWrongRowIsNamedWithFileAndLine) {
  const std::string file = folder_ / "bad.csv";
  EXPECT_EQ(error_of(kHeading + "1,a.x,2\r\n1.5,a.x,2\r\n"), file + ":3: the step is a whole number, here it is '1.5'");
  EXPECT_EQ(error_of(kHeading + "1,\"a\nb\",2\r\n1,a.x,two\r\n"), file + ":4: the value is a number, here it is 'two'");
  EXPECT_EQ(error_of(kHeading + "1,a.x\n"), file + ":2: a row has 3 fields, here are 2");
  EXPECT_EQ(error_of(kHeading + "1,\"a,2\n"), file + ":2: a quote is not closed");
  EXPECT_EQ(error_of(kHeading + "1,\"" + std::string(70'000, 'a')), file + ":2: a field has more than 65536 bytes");
  EXPECT_EQ(error_of("step,loss\n"), file + ":1: the heading of a curve.csv is step,name,value");
  EXPECT_EQ(error_of(""), file + ":1: the heading of a curve.csv is step,name,value");
  EXPECT_EQ(error_of("step,name,value\n1,a.x,2"), "none") << "line ends of any kind";
  EXPECT_EQ(CurveReader::open(folder_.path() / "none").error().text(), folder_ / "none" + ": there is no such file");
}

TEST_F(CurveFile, WithAWrongRowStaysAsItIs) {
  const std::string text = kHeading + "2,a.x,1\r\n1,a.x\r\n";
  EXPECT_EQ(order_curve(folder_.write("curve.csv", text), 1).error().code(), Errc::malformed_payload);
  EXPECT_EQ(folder_.read("curve.csv"), text);
}

TEST(Csv, NumbersAreWholeFields) {
  EXPECT_EQ(csv_number(-kNan), "nan");
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(number_of("-inf"), -kInfinity);
  EXPECT_EQ(number_of("1 "), std::nullopt);
  EXPECT_EQ(number_of(""), std::nullopt);
  EXPECT_EQ(integer_of("1e3"), std::nullopt);
  EXPECT_EQ(integer_of("9223372036854775808"), std::nullopt);
}

TEST(Csv, FieldsInQuotesReadBack) {
  std::istringstream stream("a,\"b,\"\"c\"\"\nd\",\r\n\"\"\n");
  CsvReader reader(stream);
  std::vector<std::string> fields;
  EXPECT_TRUE(reader.next(fields).value());
  EXPECT_THAT(fields, ElementsAre("a", "b,\"c\"\nd", ""));
  EXPECT_EQ(reader.line(), 1U);
  EXPECT_TRUE(reader.next(fields).value());
  EXPECT_THAT(fields, ElementsAre(""));
  EXPECT_EQ(reader.line(), 3U);
  EXPECT_FALSE(reader.next(fields).value());
}

}  // namespace
}  // namespace caftan::app::curve_test
