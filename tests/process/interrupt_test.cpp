// BI-8: Ctrl-C at any time ends a run cleanly, a second one at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "command.hpp"
#include "programs.hpp"

namespace caftan::test::interrupt_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class Interrupted : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_clean_end(Command& command) {
    EXPECT_EQ(command.wait(), 130) << command.err();
    EXPECT_TRUE(command.nothing_is_left(0ms));
    EXPECT_THAT(command.err(), HasSubstr(": interrupted after "));
    const std::string run = command.run_directory();
    EXPECT_TRUE(is_whole_csv(folder_.read(run + "/metrics.csv")));
    EXPECT_THAT(folder_.read(run + "/summary.json"), HasSubstr("\"outcome\": \"interrupted\""));
  }
  Folder folder_;
};
INSTANTIATE_TEST_SUITE_P(Placements, Interrupted, ::testing::Values("one_process", "processes"));

TEST_P(Interrupted, BI8_WhileItStarts) {
  folder_.write("t.toml", ticking_file());
  Command command(folder_, kTicking, {"run", "t.toml", "run.placement=" + GetParam()});
  ASSERT_TRUE(command.wait_for_line("ticking: seed"));
  command.signal(SIGINT);
  expect_clean_end(command);
}

TEST_P(Interrupted, BI8_WhileItRuns) {
  folder_.write("t.toml", ticking_file());
  Command command(folder_, kTicking, {"run", "t.toml", "run.placement=" + GetParam()});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  command.signal(SIGINT);
  expect_clean_end(command);
}

TEST_P(Interrupted, BI8_WhileItEvaluates) {
  Command command(
      folder_, kCaftan,
      {"run", kConfigs + "/cartpole.test.toml", "run.placement=" + GetParam(), "roles.agent.config.evaluate=1000000"});
  ASSERT_TRUE(command.wait_for_line("solved: ")) << command.err();
  command.signal(SIGINT);
  if (GetParam() == "processes") {
    expect_clean_end(command);
  } else {  // in one process the observer's call goes on; the process still ends after stop_timeout
    EXPECT_EQ(command.wait(), 130) << command.err();
  }
}

TEST_P(Interrupted, BI8_ARoleThatDoesNotStopIsKilledAfterStopTimeout) {
  folder_.write("t.toml", ticking_file("stop_timeout = \"200ms\"\n"));
  Command command(folder_, kTicking,
                  {"run", "t.toml", "run.placement=" + GetParam(), "roles.ticker.config.ignore_stop=true"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
}

TEST_P(Interrupted, BI8_AFloodOfReportsDoesNotKeepTheSignalWaiting) {
  folder_.write("t.toml", ticking_file("stop_timeout = \"200ms\"\n"));
  Command command(folder_, kTicking,
                  {"run", "t.toml", "run.placement=" + GetParam(), "roles.ticker.config.ignore_stop=true",
                   "roles.ticker.config.flood=true"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
}

TEST_P(Interrupted, BI8_ASecondSignalDoesNotWait) {
  folder_.write("t.toml", ticking_file("stop_timeout = \"10min\"\n"));
  Command command(folder_, kTicking,
                  {"run", "t.toml", "run.placement=" + GetParam(), "roles.ticker.config.ignore_stop=true"});
  ASSERT_TRUE(command.wait_for_line("tick 20")) << command.err();
  command.signal(SIGINT);
  command.signal(SIGTERM);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(0ms));
}

}  // namespace
}  // namespace caftan::test::interrupt_test
