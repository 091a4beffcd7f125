#include "caftan/net/internal/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace caftan::net::timer_wheel_test {
namespace {

using namespace std::chrono_literals;

struct NumberedTimer : Timer {
  int number = 0;
};

const base::TimePoint kStart = base::ManualClock().now();

std::vector<int> advance(TimerWheel& wheel, base::TimePoint now) {
  std::vector<int> fired;
  wheel.advance(now, [&](Timer& timer) { fired.push_back(static_cast<NumberedTimer&>(timer).number); });
  return fired;
}

TEST(TimerWheel, TW1_NeverFiresEarlyAndAtMostOneTickLate) {
  TimerWheel wheel(kStart);
  NumberedTimer timer;
  wheel.insert(timer, kStart + 1500us);
  EXPECT_TRUE(advance(wheel, kStart + 1999us).empty());
  EXPECT_TRUE(timer.is_armed());
  EXPECT_EQ(advance(wheel, kStart + 2ms).size(), 1U);
  EXPECT_FALSE(timer.is_armed());
  EXPECT_TRUE(wheel.empty());
}

TEST(TimerWheel, TW1_AWholeTickIsNotRoundedUp) {
  TimerWheel wheel(kStart);
  NumberedTimer timer;
  wheel.insert(timer, kStart + 2ms);
  EXPECT_EQ(advance(wheel, kStart + 2ms).size(), 1U);
}

TEST(TimerWheel, TW2_DeadlinesOfTheFarFutureHaveAPlace) {
  TimerWheel wheel(base::TimePoint(base::Duration(-5)));
  NumberedTimer never, century;
  century.number = 1;
  wheel.insert(never, base::kNever);
  wheel.insert(century, kStart + 24h * 36500);
  EXPECT_TRUE(advance(wheel, kStart + 24h * 36499).empty());
  EXPECT_EQ(advance(wheel, kStart + 24h * 36501), std::vector<int>{1});
  EXPECT_GT(wheel.next_expiry(), kStart + 24h * 36501);
  wheel.cancel(never);
  EXPECT_EQ(wheel.next_expiry(), base::kNever);
}

TEST(TimerWheel, TW3_TimersOfOneTickFireInTheOrderOfInsertion) {
  TimerWheel wheel(kStart);
  std::vector<NumberedTimer> timers(6);
  for (int i = 0; i < 6; ++i) timers[i].number = i;
  for (int i = 0; i < 3; ++i) wheel.insert(timers[i], kStart + 5000ms);
  EXPECT_TRUE(advance(wheel, kStart + 4990ms).empty());
  for (int i = 3; i < 6; ++i) wheel.insert(timers[i], kStart + 5000ms);
  EXPECT_EQ(advance(wheel, kStart + 5s), (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(TimerWheel, TW4_AFiringTimerMayCancelItsNeighboursAndArmItselfAgain) {
  TimerWheel wheel(kStart);
  NumberedTimer a, b;
  b.number = 1;
  wheel.insert(a, kStart + 1ms);
  wheel.insert(b, kStart + 1ms);
  int fired = 0;
  wheel.advance(kStart + 1ms, [&](Timer& timer) {
    ++fired;
    EXPECT_EQ(&timer, &a);
    wheel.cancel(b);
    wheel.insert(a, kStart);  // in the past already
  });
  EXPECT_EQ(fired, 1) << "what is armed while timers fire waits for the next advance";
  EXPECT_LE(wheel.next_expiry(), kStart + 1ms);
  EXPECT_EQ(advance(wheel, kStart + 1ms), std::vector<int>{0});
}

TEST(TimerWheel, TW4_AFiringTimerMayBeDestroyed) {
  TimerWheel wheel(kStart);
  std::vector<std::unique_ptr<NumberedTimer>> timers;
  for (int i = 0; i < 3; ++i) {
    timers.push_back(std::make_unique<NumberedTimer>());
    timers.back()->number = i;
    wheel.insert(*timers.back(), kStart + 1ms);
  }
  wheel.advance(kStart + 1ms, [&](Timer& timer) { timers[static_cast<NumberedTimer&>(timer).number].reset(); });
  EXPECT_EQ(timers, decltype(timers)(3));
}

// Compares the wheel with a sorted list over random inserts, cancels and jumps of all sizes.
class TimerWheelModel : public ::testing::TestWithParam<int> {};

TEST_P(TimerWheelModel, TW1_TW2_TW3_TW5_BehavesAsASortedList) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  base::TimePoint now = kStart;
  TimerWheel wheel(now);
  std::vector<NumberedTimer> timers(300);
  for (int i = 0; i < 300; ++i) timers[i].number = i;
  std::multimap<base::TimePoint, int> model;  // ordered by tick, timers of one tick in order of insertion
  const auto tick_of = [](base::TimePoint at) {
    return at <= kStart ? kStart : kStart + std::chrono::ceil<std::chrono::milliseconds>(at - kStart);
  };
  const auto random_span = [&] {
    // A span of up to 2^40 us, twelve days; all orders of magnitude are equally likely.
    const auto bits = random() % 40;
    return base::Duration(static_cast<base::Duration::rep>(random() % (std::uint64_t{1} << bits)) * 1000);
  };
  for (int step = 0; step < 6000; ++step) {
    NumberedTimer& timer = timers[random() % timers.size()];
    switch (random() % 3) {
      case 0:
        if (!timer.is_armed()) {
          const base::TimePoint deadline = now + random_span() - base::Duration(random() % 8 == 0 ? 3'000'000 : 0);
          wheel.insert(timer, deadline);
          // A deadline in the past counts as now: in the model, too, the timer fires at the next advance.
          model.emplace(
              std::max(tick_of(deadline), kStart + std::chrono::floor<std::chrono::milliseconds>(now - kStart)),
              timer.number);
        }
        break;
      case 1:
        if (timer.is_armed()) {
          wheel.cancel(timer);
          model.erase(
              std::find_if(model.begin(), model.end(), [&](auto& entry) { return entry.second == timer.number; }));
        }
        break;
      default: {
        if (!model.empty()) {
          ASSERT_LE(wheel.next_expiry(), model.begin()->first);
        }
        now = random() % 4 == 0 && !model.empty() ? std::max(now, wheel.next_expiry()) : now + random_span() / 64;
        std::vector<int> expected;
        while (!model.empty() && model.begin()->first <= now) {
          expected.push_back(model.begin()->second);
          model.erase(model.begin());
        }
        ASSERT_EQ(advance(wheel, now), expected) << "step " << step;
      }
    }
    ASSERT_EQ(wheel.size(), model.size());
    ASSERT_EQ(wheel.next_expiry() == base::kNever, model.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TimerWheelModel, ::testing::Range(1, 9));

TEST(TimerWheel, TW5_FollowingNextExpiryReachesEachDeadlineInAFewSteps) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    base::TimePoint now = kStart + base::Duration(static_cast<base::Duration::rep>(random() % 100'000'000'000));
    TimerWheel wheel(kStart);
    advance(wheel, now);
    NumberedTimer timer;
    const base::TimePoint deadline =
        now + base::Duration(static_cast<base::Duration::rep>(random() % (std::uint64_t{1} << 55)));
    wheel.insert(timer, deadline);
    int steps = 0;
    while (timer.is_armed()) {
      ASSERT_LE(++steps, 8);
      now = std::max(now, wheel.next_expiry());
      advance(wheel, now);
    }
    EXPECT_LT(now - deadline, 1ms);
    EXPECT_GE(now, deadline);
  }
}

TEST(TimerWheel, T12_IsSmallUntilItIsUsed) { EXPECT_LE(sizeof(TimerWheel), 256U); }

}  // namespace
}  // namespace caftan::net::timer_wheel_test
