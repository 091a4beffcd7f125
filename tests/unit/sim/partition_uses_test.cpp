// What the actors ask of the rules beside a run: borders in between, whose frame it is, how far another partition was,
// and what is about to be handled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/sim/internal/grant_rule.hpp"
#include "caftan/sim/internal/partition.hpp"
#include "random_model.hpp"

namespace caftan::sim::test::partition_uses_test {
namespace {

using ::testing::HasSubstr;

Time units(double value) { return time_of(value).value(); }

TEST(GrantRule, SM9_AGrantGoesNoFartherThanTheCallerAsks) {
  auto rule = GrantRule::make({.end_time = 10, .checkpoint_every = 4}, 1).value();
  auto grant = rule.next({}, units(3));
  EXPECT_EQ(grant->border, units(3));
  EXPECT_FALSE(grant->saves);
  rule.on_granted(*grant);
  grant = rule.next({}, units(8));
  EXPECT_EQ(grant->border, units(4));
  EXPECT_TRUE(grant->saves);
  EXPECT_EQ(rule.next({}, Time{})->border, Time{units(3).ticks + 1}) << "but it gets on";
}

TEST(GrantRule, SM16_AStepThatIsCutShortIsStillAsked) {
  auto rule = GrantRule::make({.end_time = 10}, 1).value();
  rule.on_granted({.border = units(1)});
  ASSERT_TRUE(rule.on_report(0, {.border = units(1), .next = units(5)}));
  rule.step_next();
  const auto half = rule.next({}, units(2));
  EXPECT_FALSE(half->pauses);
  rule.on_granted(*half);
  ASSERT_TRUE(rule.on_report(0, {.border = units(2), .next = units(5)}));
  const auto whole = rule.next({});
  EXPECT_EQ(whole->border, Time{units(5).ticks + 1});
  EXPECT_TRUE(whole->pauses);
}

/// Keeps the frames of a partition.
struct Kept final : FrameSink {
  void send(std::uint32_t, wire::Bytes frame) override { frames.push_back(std::move(frame)); }
  std::vector<wire::Bytes> frames;
};

TEST(Partition, SM5_AFrameIsTakenFromThePartitionThatItNamesOnly) {
  const Shape shape{.seed = 1, .groups = {0, 1}, .lookahead = 2};
  Kept kept[2];
  std::vector<std::unique_ptr<Partition>> partitions;
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto kernel = make_kernel([&](Builder& builder) { build(builder, shape); }, {.seed = 1}, i, 2);
    partitions.push_back(std::make_unique<Partition>(7, *std::move(kernel), Sync::window, kept[i]));
    ASSERT_TRUE(partitions[i]->start());
  }
  EXPECT_EQ(partitions[0]->heard_of(1), Time{});
  ASSERT_FALSE(kept[1].frames.empty());
  ASSERT_TRUE(partitions[0]->on_frame(kept[1].frames.front(), 1));
  EXPECT_EQ(partitions[0]->heard_of(1), partitions[1]->kernel().next());
  const auto refused = partitions[1]->on_frame(kept[0].frames.front(), 1);
  EXPECT_THAT(refused.error().text(), HasSubstr("is not of another partition"));
}

/// Notes the time of each event before it is handled.
struct Noted final : EventWatch {
  void before(const Event& event, wire::ByteView) override { times.push_back(event.time); }
  std::vector<std::int64_t> times;
};

TEST(Kernel, AWatchSeesEachEventBeforeItIsHandled) {
  const Shape shape = make_shape(4);
  Noted noted;
  auto kernel = make_kernel([&](Builder& builder) { build(builder, shape); }, {.seed = 4, .watch = &noted});
  ASSERT_TRUE((*kernel)->start());
  ASSERT_TRUE((*kernel)->run_until(Time{shape.end}));
  EXPECT_EQ(noted.times.size(), (*kernel)->counters().handled);
  EXPECT_TRUE(std::is_sorted(noted.times.begin(), noted.times.end()));
}

}  // namespace
}  // namespace caftan::sim::test::partition_uses_test
