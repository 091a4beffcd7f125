// The order in which stages work on micro-batches: PI-1 to PI-4.
#include "pipeline/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <tuple>
#include <vector>

namespace caftan::pipeline::schedule_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kAll = ScheduleName::all_forward_then_backward;
constexpr auto kOne = ScheduleName::one_forward_one_backward;

Begin forward(std::size_t stage, std::size_t micro_batch) {
  return {.kind = Begin::Kind::forward, .stage = stage, .micro_batch = micro_batch};
}
Begin backward(std::size_t micro_batch) { return {.kind = Begin::Kind::backward, .micro_batch = micro_batch}; }

TEST(Schedule, PI1_MicroBatchesGoThroughTheStagesInTheirOrder) {
  Schedule schedule(kAll, 2, 2);
  EXPECT_THAT(schedule.take(), ElementsAre(forward(0, 0)));
  EXPECT_THAT(schedule.take(), IsEmpty()) << "the stage works";
  schedule.end_forward(0, 0);
  EXPECT_THAT(schedule.take(), ElementsAre(forward(1, 0), forward(0, 1)));
  schedule.end_forward(0, 1);
  EXPECT_THAT(schedule.take(), IsEmpty()) << "the last stage still has the first one";
  schedule.end_forward(1, 0);
  EXPECT_THAT(schedule.take(), ElementsAre(forward(1, 1)));
}

TEST(Schedule, PI3_AllGoForwardBeforeOneGoesBack) {
  Schedule schedule(kAll, 1, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(schedule.take(), ElementsAre(forward(0, i)));
    schedule.end_forward(0, i);
  }
  EXPECT_THAT(schedule.take(), ElementsAre(backward(0), backward(1), backward(2)));
  EXPECT_THAT(schedule.take(), IsEmpty());
}

TEST(Schedule, PI2_TheLastStageGoesBackAndForth) {
  Schedule schedule(kOne, 2, 4);
  (void)schedule.take();
  schedule.end_forward(0, 0);
  EXPECT_THAT(schedule.take(), ElementsAre(forward(1, 0), forward(0, 1)));
  schedule.end_forward(0, 1);
  EXPECT_THAT(schedule.take(), IsEmpty()) << "the first stage holds two";
  schedule.end_forward(1, 0);
  EXPECT_THAT(schedule.take(), ElementsAre(backward(0))) << "the last stage holds one until it went back";
  schedule.end_backward_at(1, 0);
  EXPECT_THAT(schedule.take(), ElementsAre(forward(1, 1)));
  schedule.end_forward(1, 1);
  EXPECT_THAT(schedule.take(), ElementsAre(backward(1)));
  schedule.end_backward_at(0, 0);
  EXPECT_THAT(schedule.take(), ElementsAre(forward(0, 2)));
}

TEST(Schedule, TheEndOfAPassFreesAllStagesOnce) {
  Schedule schedule(kOne, 2, 3);
  (void)schedule.take();
  schedule.end_forward(0, 0);
  (void)schedule.take();
  schedule.end_forward(0, 1);
  schedule.end_forward(1, 0);
  (void)schedule.take();
  schedule.end_backward_at(1, 0);
  schedule.end_backward(0);
  schedule.end_backward_at(0, 0);  // a report that came late
  EXPECT_THAT(schedule.take(), ElementsAre(forward(1, 1), forward(0, 2)));
  EXPECT_THAT(schedule.take(), IsEmpty());
}

class AnyOrder : public ::testing::TestWithParam<std::tuple<std::size_t, std::size_t, ScheduleName>> {};
INSTANTIATE_TEST_SUITE_P(Sizes, AnyOrder,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5), ::testing::Values(1, 2, 7, 16),
                                            ::testing::Values(kAll, kOne)));

/// Ends what has begun in an order that a seed chooses, and holds the schedule to its rules.
TEST_P(AnyOrder, EverythingBeginsOnceInOrderAndNoStageHoldsTooMuch) {
  const auto [stages, pieces, name] = GetParam();
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Schedule schedule(name, stages, pieces);
    struct Running {
      Begin what;
      std::size_t at;  // of a backward: the stage where it is
    };
    std::vector<Running> running;
    std::vector<std::size_t> forwards(stages), ended(stages), held(stages);
    std::size_t backwards = 0, passes = 0;
    while (!schedule.is_done()) {
      for (const Begin& what : schedule.take()) {
        if (what.kind == Begin::Kind::backward) {
          EXPECT_EQ(what.micro_batch, backwards++);
          EXPECT_GT(ended.back(), what.micro_batch);
          if (name == kAll) {
            EXPECT_EQ(ended.back(), pieces);
          }
          running.push_back({what, stages - 1});
          continue;
        }
        EXPECT_EQ(what.micro_batch, forwards[what.stage]++);
        if (what.stage > 0) {
          EXPECT_GT(ended[what.stage - 1], what.micro_batch);
        }
        ++held[what.stage];
        if (name == kOne) {
          EXPECT_LE(held[what.stage], stages - what.stage);
        }
        running.push_back({what, what.stage});
      }
      ASSERT_FALSE(running.empty()) << "nothing runs and nothing may begin";
      const auto at = running.begin() + static_cast<std::ptrdiff_t>(random() % running.size());
      if (at->what.kind == Begin::Kind::forward) {
        schedule.end_forward(at->at, at->what.micro_batch);
        ended[at->at] = at->what.micro_batch + 1;
        running.erase(at);
        continue;
      }
      schedule.end_backward_at(at->at, at->what.micro_batch);
      --held[at->at];
      if (at->at-- > 0) continue;
      schedule.end_backward(at->what.micro_batch);
      ++passes;
      running.erase(at);
    }
    EXPECT_EQ(passes, pieces);
    for (const std::size_t count : forwards) EXPECT_EQ(count, pieces);
    EXPECT_THAT(schedule.take(), IsEmpty());
  }
}

}  // namespace
}  // namespace caftan::pipeline::schedule_test
