#include "caftan/base/internal/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace caftan::log_test {
namespace {

using ::testing::MatchesRegex;

std::vector<std::string> lines(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> found;
  for (std::string line; std::getline(stream, line);) found.push_back(line);
  return found;
}

class LogFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }
  Log open(LogLevel level = LogLevel::info) {
    return Log::open({.worker = "observer-0", .level = level, .to_stderr = false, .file = file_}).value();
  }
  std::filesystem::path file_ = ::testing::TempDir() + "caftan_log_" + std::to_string(::getpid());
};

TEST_F(LogFile, LinesCarryTimeLevelWorkerAndSubsystem) {
  const Log log = open();
  log.in("transport").info("channel unix");
  log.warning("late");
  const std::vector<std::string> found = lines(file_);
  ASSERT_EQ(found.size(), 2U) << "each line is in the file at once";
  EXPECT_THAT(found[0], MatchesRegex("....-..-..T..:..:..\\.......Z info observer-0 transport: channel unix"));
  EXPECT_THAT(found[1], MatchesRegex(".*Z warning observer-0 late"));
}

TEST_F(LogFile, OneTextIsOneLine) {
  open().error("first\r\nsecond {} %s");
  ASSERT_EQ(lines(file_).size(), 1U);
  EXPECT_THAT(lines(file_)[0], ::testing::EndsWith("error observer-0 first\\nsecond {} %s"));
}

TEST_F(LogFile, LevelsBelowAreDropped) {
  const Log log = open(LogLevel::warning);
  log.info("no");
  log.error("yes");
  EXPECT_EQ(lines(file_).size(), 1U);
  EXPECT_FALSE(log.enabled(LogLevel::info));
  EXPECT_TRUE(log.in("rpc").enabled(LogLevel::warning));
}

TEST_F(LogFile, IsAppendedTo) {
  open().info("one");
  open().info("two");
  EXPECT_EQ(lines(file_).size(), 2U);
}

TEST(Log, WithoutADestinationWritesNothing) {
  const Log log;
  EXPECT_FALSE(log.enabled(LogLevel::error));
  log.error("nowhere");
}

TEST(Log, AFileThatCannotBeOpenedIsAnError) {
  const Result<Log> log = Log::open({.worker = "agent", .to_stderr = false, .file = "/dev/null/x.log"});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code(), Errc::io_error);
}

}  // namespace
}  // namespace caftan::log_test
