// The progress line, whose form people read and scripts rely on.
#include "launch/progress_line.hpp"

#include <gtest/gtest.h>

namespace caftan::actors::progress_line_test {
namespace {

using namespace std::chrono_literals;

TEST(ProgressLine, PutsTheBarBeforeTheLastPartOfTheText) {
  const ProgressState state{
      .done = 300, .total = 475, .text = "episode 190  running reward 300.2 of 475  34,120 steps, 21.4 k steps/s"};
  EXPECT_EQ(render_progress("agent", state, 2s, 0),
            "0:02  episode 190  running reward 300.2 of 475 [#########------]  34,120 steps, 21.4 k steps/s");
}

TEST(ProgressLine, CountsWhereARoleSaysNothingElse) {
  EXPECT_EQ(render_progress("driver", {.done = 37, .total = 100}, 61s, 0),
            "1:01  driver  step 37 of 100 [#####----------]");
  EXPECT_EQ(render_progress("driver", {.done = 37}, 0s, 0), "0:00  driver  step 37");
}

TEST(ProgressLine, CountsWhereTheTextOfARoleDoesNot) {
  EXPECT_EQ(render_progress("agent", {.done = 120, .total = 600, .text = "running reward -8.5  fine"}, 2s, 0),
            "0:02  step 120 of 600 [###------------]  running reward -8.5  fine");
  EXPECT_EQ(render_progress("agent-1", {.done = 120, .total = 600, .text = "mean of 6000"}, 2s, 0, true),
            "0:02  agent-1  step 120 of 600 [###------------]  mean of 6000");
  EXPECT_EQ(render_progress("agent", {.done = 120, .text = "warms up"}, 2s, 0), "0:02  warms up");
}

TEST(ProgressLine, U7_SaysWhoseItIsWhereSeveralDrive) {
  const ProgressState state{.done = 300, .total = 475, .text = "episode 190  running reward 300.2 of 475"};
  EXPECT_EQ(render_progress("agent-1", state, 2s, 0, true),
            "0:02  agent-1  episode 190 [#########------]  running reward 300.2 of 475");
  EXPECT_EQ(render_progress("driver", {.done = 37}, 0s, 0, true), "0:00  driver  step 37");
}

TEST(ProgressLine, StaysWithinTheTerminalAndOnItsLine) {
  const ProgressState state{.done = 500, .total = 100, .text = "a\x1b[2Jb\nc"};
  EXPECT_EQ(render_progress("x", state, 0s, 0), "0:00  step 500 of 100 [###############]  a [2Jb c");
  EXPECT_EQ(render_progress("x", state, 0s, 6), "0:00");
}

TEST(ProgressLine, U11_LeavesOutWholePartsWhereThereIsNoRoomAndKeepsTheTime) {
  const ProgressState state{
      .done = 300,
      .total = 475,
      .text = "episode 190  running reward 300.2 of 475  34,120 steps, 21.4 k steps/s, 42.8 k calls/s"};
  EXPECT_EQ(render_progress("agent", state, 62s, 80),
            "1:02  episode 190  running reward 300.2 of 475 [#########------]");
  EXPECT_EQ(render_progress("agent", state, 62s, 60), "1:02  episode 190  running reward 300.2 of 475");
  EXPECT_EQ(render_progress("agent", state, 62s, 20), "1:02  episode 190");
}

TEST(ProgressLine, KnowsWhereARunIs) {
  EXPECT_EQ(where_of({.text = "episode 121  running reward 3"}), "episode 121");
  EXPECT_EQ(where_of({.done = 3, .total = 600, .text = "running reward 3"}), "step 3 of 600");
  EXPECT_EQ(where_of({.done = 121, .total = 600, .text = "episode 121 of 600  running reward 3"}),
            "episode 121 of 600");
  EXPECT_EQ(where_of({}), "");
}

}  // namespace
}  // namespace caftan::actors::progress_line_test
