// RN-6, RN-7: signals that were ignored at the start, and a launcher whose output is not read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::unread_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// A named pipe that is full from the beginning and that the test reads only on request.
class FullPipe {
 public:
  explicit FullPipe(const std::string& path) : path_(path) {
    if (::mkfifo(path.c_str(), 0600) == 0) fd_ = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    while (::write(fd_, "x", 1) == 1) ++filled_;
  }
  ~FullPipe() { ::close(fd_); }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  const std::string& path() const { return path_; }
  /// Reads until `end` was read. Returns what was written after the pipe was filled.
  std::string read_up_to(const std::string& end) {
    ::fcntl(fd_, F_SETFL, O_RDWR);
    std::string text;
    std::array<char, 65536> bytes{};
    while (text.find(end) == std::string::npos) {
      const ssize_t size = ::read(fd_, bytes.data(), bytes.size());
      if (size <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(size));
    }
    return text.substr(filled_);
  }

 private:
  std::string path_;
  int fd_ = -1;
  std::size_t filled_ = 0;
};

class Unread : public ::testing::TestWithParam<std::string> {
 protected:
  Unread() : pipe_(folder_ / "pipe") { folder_.write("t.toml", ticking_file()); }
  /// Returns a line for a shell.
  std::string run(const std::string& settings) const {
    return "exec '" + kTicking + "' run t.toml output.every=100ms run.placement=" + GetParam() + " " + settings;
  }
  void expect_outcome(const std::string& outcome) {
    EXPECT_THAT(folder_.read("runs/latest/summary.json"), HasSubstr("\"outcome\": \"" + outcome + "\""));
  }
  Folder folder_;
  FullPipe pipe_;
};
INSTANTIATE_TEST_SUITE_P(Placements, Unread, ::testing::Values("one_process", "processes"));

TEST_P(Unread, T3_RN6_SignalsThatWereIgnoredAtTheStartStayIgnored) {
  Command command(folder_, "/bin/sh", {"-c", "trap '' HUP INT; " + run("roles.ticker.config.rounds=5000")});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  command.signal(SIGHUP);
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 0) << command.err();
  EXPECT_THAT(command.out(), HasSubstr("tick 5000\n"));
}

TEST_P(Unread, T3_RN6_OthersEndTheRunAllTheSame) {
  Command command(folder_, "/bin/sh", {"-c", "trap '' HUP INT; " + run("")});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  command.signal(SIGHUP);
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  expect_outcome("interrupted");
}

TEST_P(Unread, K13_RN6_ASignalAfterTheEndChangesNothing) {
  Command command(folder_, "/bin/sh", {"-c", run("roles.ticker.config.rounds=3")});
  ASSERT_TRUE(command.wait_for_line("runs/")) << command.err();
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait(), 0) << command.err();
}

TEST_P(Unread, K2_RN7_AnInterruptEndsARunWhoseResultsAreNotRead) {
  Command command(folder_, "/bin/sh", {"-c", run("roles.ticker.config.flood=true >" + pipe_.path())});
  ASSERT_TRUE(command.wait_for_line("  ticker ")) << command.err();
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  expect_outcome("interrupted");
}

TEST_P(Unread, K2_RN7_ItsTimeIsOverThoughNothingIsRead) {
  Command command(folder_, "/bin/sh", {"-c", run("run.wall=1s >" + pipe_.path() + " 2>&1")});
  EXPECT_EQ(command.wait(), 1) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
  expect_outcome("failure");
}

TEST_P(Unread, K2_RN7_ResultsWaitForTheirReader) {
  Command command(folder_, "/bin/sh", {"-c", run("roles.ticker.config.rounds=2000 >" + pipe_.path())});
  ASSERT_TRUE(command.wait_for_line("  ticker ")) << command.err();
  const std::string text = pipe_.read_up_to("summary.json log/\n");
  EXPECT_EQ(command.wait(), 0) << command.err();
  std::string all;
  for (int round = 1; round <= 2000; ++round) all += "tick " + std::to_string(round) + "\n";
  EXPECT_EQ(text.substr(0, all.size()), all);
}

}  // namespace
}  // namespace caftan::test::unread_test
