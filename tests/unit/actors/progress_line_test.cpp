// The progress line, whose form people read and scripts rely on.
#include "progress_line.hpp"

#include <gtest/gtest.h>

namespace caftan::actors {
namespace {

using namespace std::chrono_literals;

TEST(ProgressLine, PutsTheBarBeforeTheLastPartOfTheText) {
  const ProgressState state{
      .done = 300, .total = 475, .text = "episode 190  running reward 300.2 of 475  34,120 steps, 21.4 k steps/s"};
  EXPECT_EQ(render_progress("agent", state, 2s, 0),
            "episode 190  running reward 300.2 of 475 [#########------]  34,120 steps, 21.4 k steps/s  0:02");
}

TEST(ProgressLine, CountsWhereARoleSaysNothingElse) {
  EXPECT_EQ(render_progress("driver", {.done = 37, .total = 100}, 61s, 0), "driver  37 of 100 [#####----------]  1:01");
  EXPECT_EQ(render_progress("driver", {.done = 37}, 0s, 0), "driver  37  0:00");
}

TEST(ProgressLine, StaysWithinTheTerminalAndOnItsLine) {
  const ProgressState state{.done = 500, .total = 100, .text = "a\x1b[2Jb\nc"};
  EXPECT_EQ(render_progress("x", state, 0s, 0), "a [2Jb c [###############]  0:00");
  EXPECT_EQ(render_progress("x", state, 0s, 6), "a [2Jb");
}

TEST(ProgressLine, KnowsWhereARunIs) {
  EXPECT_EQ(where_of({.text = "episode 121  running reward 3"}), "episode 121");
  EXPECT_EQ(where_of({}), "");
}

}  // namespace
}  // namespace caftan::actors
