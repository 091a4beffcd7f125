// What a stage notes of its work: when a backward begins and ends, who waits for it, how much is held.
#include "pipeline/work.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "pipeline/report_text.hpp"
#include "pipeline/work_log.hpp"

namespace caftan::pipeline::work_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Log : public ::testing::Test {
 protected:
  void pass(int seconds) { clock_->advance(std::chrono::seconds(seconds)); }
  std::shared_ptr<base::ManualClock> clock_ = std::make_shared<base::ManualClock>();
  WorkLog log_{2, clock_};
};

TEST_F(Log, ABackwardEndsWhenEachParameterHasItsGradient) {
  const double begin = log_.now();
  pass(1);
  log_.end_forward(3, begin);
  Future<void> ended = log_.backward_ended(3);
  pass(1);
  log_.begin_backward(3);
  pass(1);
  log_.add_gradient();
  EXPECT_FALSE(ended.ready());
  pass(1);
  log_.add_gradient();
  ASSERT_TRUE(ended.ready());
  EXPECT_TRUE(ended.result());
  const auto works = log_.take();
  ASSERT_EQ(works.size(), 2U);
  EXPECT_EQ(works[0].kind, WorkKind::forward);
  EXPECT_EQ(works[1].kind, WorkKind::backward);
  EXPECT_EQ(works[1].micro_batch, 3U);
  EXPECT_DOUBLE_EQ(works[0].end - works[0].begin, 1);
  EXPECT_DOUBLE_EQ(works[1].begin - works[0].end, 1);
  EXPECT_DOUBLE_EQ(works[1].end - works[1].begin, 2);
  EXPECT_THAT(log_.take(), IsEmpty());
}

TEST_F(Log, TheEndOfThePassEndsTheWaitInAnyCase) {
  Future<void> ended = log_.backward_ended(1);
  log_.end_pass(0);
  EXPECT_FALSE(ended.ready());
  log_.end_pass(1);
  EXPECT_TRUE(ended.ready());
  log_.end_pass(1);
}

TEST_F(Log, CountsWhatIsHeldAtOnce) {
  for (std::uint32_t i = 0; i < 3; ++i) log_.end_forward(i, log_.now());
  for (std::uint32_t i = 0; i < 2; ++i) {
    log_.begin_backward(i);
    log_.add_gradient();
    log_.add_gradient();
  }
  log_.end_forward(3, log_.now());
  EXPECT_EQ(log_.take_most_held(), 3U);
  EXPECT_EQ(log_.take_most_held(), 0U);
}

TEST(Works, TheIdleShareIsWhatIsLeftOfTheWindow) {
  const std::vector<Work> works{{.begin = 10, .end = 11}, {.begin = 12, .end = 14}};
  EXPECT_DOUBLE_EQ(idle_share(works, 4), 0.25);
  EXPECT_DOUBLE_EQ(idle_share({}, 4), 1);
  EXPECT_DOUBLE_EQ(idle_share(works, 0), 0);
  EXPECT_DOUBLE_EQ(idle_share(works, 2), 0) << "more than one at a time";
}

TEST(Works, ArePicturedInMillisecondsSinceTheFirst) {
  const std::string picture = draw_batch("b", {"s0", "s1"},
                                         {{{.kind = WorkKind::forward, .micro_batch = 0, .begin = 7, .end = 7.5}},
                                          {{.kind = WorkKind::backward, .micro_batch = 1, .begin = 7.5, .end = 8}}})
                                  .value();
  EXPECT_THAT(picture, AllOf(HasSubstr("<title>forward 0: 0 to 500</title>"),
                             HasSubstr("<title>backward 1: 500 to 1000</title>"), HasSubstr(">s1</text>")));
  EXPECT_EQ(draw_batch("b", {"s0"}, {{}}).error().code(), Errc::bad_arguments);
}

TEST(Reports, HaveTheirForm) {
  EXPECT_EQ(batch_line({.batch = 12, .batches = 60, .loss = 1.2344, .s_per_batch = 0.4119, .bubble = 0.231}),
            "batch 12 of 60  loss 1.234  0.412 s/batch, bubble 23 %");
  EXPECT_EQ(trained_line({.batch = 60, .batches = 60, .loss = 0.3211, .s_per_batch = 0.4119}, 24.71),
            "trained: 60 batches, loss 0.321, 0.412 s/batch, 24.7 s");
  StageSummary summary{.name = "stage-0",
                       .units = "conv1..layer2.1",
                       .bubble = 0.31,
                       .most_held = 2,
                       .memory = 127'000'000,
                       .peak_memory = 212'000'000};
  EXPECT_EQ(stage_line(summary),
            "stage-0 (conv1..layer2.1): bubble 31 %, held at most 2 micro-batches, peak memory 212 MB (85 MB more than "
            "before the first batch)");
  summary.is_apart = false;
  summary.most_held = 1;
  EXPECT_EQ(stage_line(summary),
            "stage-0 (conv1..layer2.1): bubble 31 %, held at most 1 micro-batch, peak memory 212 MB of its process, "
            "which has several workers");
  summary.peak_memory = 0;
  EXPECT_EQ(stage_line(summary), "stage-0 (conv1..layer2.1): bubble 31 %, held at most 1 micro-batch");
}

}  // namespace
}  // namespace caftan::pipeline::work_test
