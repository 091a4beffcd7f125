// Whether a thread spins before it sleeps, and how long, with a clock that is moved by hand.
#include "caftan/transport/internal/spin_policy.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

namespace caftan::transport::spin_policy_test {
namespace {

using namespace std::chrono_literals;
using Waiter = SpinPolicy::Waiter;

std::uint64_t lost_cores = 0;  // what the kernel counts
std::uint64_t count_lost() noexcept { return lost_cores; }

constexpr SpinOptions kLearns{.threads = 1, .cores = 2};
constexpr SpinOptions kAlways{.threads = 1, .longest = 20us, .learns = false, .cores = 2};

/// A thread that waits.
class Thread {
 public:
  Thread(SpinPolicy& policy, base::ManualClock& clock, Waiter waiter = Waiter::caller)
      : policy_(policy), clock_(clock), waiter_(waiter) {}

  /// Waits for something that comes after `time`, spinning or asleep. Returns how long it has spun.
  base::Duration wait(base::Duration time) {
    SpinWait wait(policy_, habit, waiter_, clock_);
    base::Duration spun{0};
    while (spun < time && wait.go_on()) {
      clock_.advance(1us);
      spun += 1us;
    }
    wait.stop(spun >= time);
    clock_.advance(time - spun);
    return spun;
  }
  /// Spins, and loses its core to another thread for `gap` meanwhile. Returns whether it may go on.
  bool lose_core(base::Duration gap) {
    ++lost_cores;
    return is_interrupted(gap);
  }
  /// Spins, and an interrupt takes `gap` meanwhile. Returns whether it may go on.
  bool is_interrupted(base::Duration gap) {
    SpinWait wait(policy_, habit, waiter_, clock_);
    EXPECT_TRUE(wait.go_on());
    clock_.advance(gap);
    return policy_.go_on(habit, waiter_, clock_.now());
  }
  bool may_spin() {
    const SpinWait wait(policy_, habit, waiter_, clock_);
    return wait.spins();
  }

  SpinHabit habit;

 private:
  SpinPolicy& policy_;
  base::ManualClock& clock_;
  const Waiter waiter_;
};

class CountingClock final : public base::Clock {
 public:
  base::TimePoint now() const noexcept override { return base::TimePoint(base::Duration(++looks)); }
  mutable int looks = 0;
};

class SpinPolicyTest : public ::testing::Test {
 protected:
  base::ManualClock clock_;
};

TEST_F(SpinPolicyTest, SP4_ShortWaitsSetTheLimitToTwiceTheirTime) {
  SpinPolicy policy(kLearns);
  Thread thread(policy, clock_);
  EXPECT_EQ(thread.wait(15us), 0us) << "it has not waited yet";
  EXPECT_EQ(thread.habit.limit, 30us);
  EXPECT_EQ(thread.wait(15us), 15us);
  EXPECT_EQ(thread.wait(49us), 30us) << "lost";
  EXPECT_EQ(thread.habit.limit, 50us) << "it came soon all the same";
  EXPECT_EQ(thread.wait(0us), 0us);
  EXPECT_EQ(thread.habit.limit, 20us) << "at least";
}

TEST_F(SpinPolicyTest, SP4_LongWaitsHalveTheLimit) {
  SpinPolicy policy(kLearns);
  Thread thread(policy, clock_);
  thread.wait(40us);
  for (const auto spun : {50us, 25us, 13us, 7us, 4us}) EXPECT_EQ(thread.wait(50us), spun);
  EXPECT_EQ(thread.habit.limit, 0us) << "below 2 us";
  EXPECT_EQ(thread.wait(50us), 0us);
}

TEST_F(SpinPolicyTest, SP4_EachSixtyFourthWaitSpinsAllTheSame) {
  SpinPolicy policy(kLearns);
  Thread thread(policy, clock_);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 63; ++i) ASSERT_EQ(thread.wait(1ms), 0us) << i;
    EXPECT_EQ(thread.wait(1ms), 50us);
    EXPECT_EQ(thread.habit.limit, 0us);
  }
  for (int i = 0; i < 63; ++i) thread.wait(1ms);
  EXPECT_EQ(thread.wait(35us), 35us);
  EXPECT_EQ(thread.habit.limit, 50us) << "the sleep of the peer was all that made waits long";
}

TEST_F(SpinPolicyTest, SP4_ADurationOfTheFileIsTheLimitAlways) {
  SpinPolicy policy(kAlways);
  Thread thread(policy, clock_);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(thread.wait(10ms), 20us);
}

TEST_F(SpinPolicyTest, SP5_NoMoreCallersSpinThanTheBudgetHas) {
  SpinPolicy policy({.threads = 2, .learns = false, .cores = 8});
  SpinHabit habits[3];
  {
    SpinWait one(policy, habits[0], Waiter::caller, clock_);
    const SpinWait two(policy, habits[1], Waiter::caller, clock_);
    const SpinWait three(policy, habits[2], Waiter::caller, clock_);
    EXPECT_TRUE(one.spins() && two.spins());
    EXPECT_FALSE(three.spins());
    one.stop();
    const SpinWait four(policy, habits[2], Waiter::caller, clock_);
    EXPECT_TRUE(four.spins());
  }
  EXPECT_EQ(policy.counts().spins, 3U);
}

TEST_F(SpinPolicyTest, SP5_OneRunnerSpinsAndOnlyWhileNoCallerDoes) {
  SpinPolicy policy({.threads = 2, .learns = false, .cores = 8});
  SpinHabit habits[3];
  SpinWait runner(policy, habits[0], Waiter::runner, clock_);
  EXPECT_TRUE(runner.go_on());
  EXPECT_FALSE(SpinWait(policy, habits[1], Waiter::runner, clock_).spins());
  SpinWait caller(policy, habits[2], Waiter::caller, clock_);
  EXPECT_TRUE(caller.go_on());
  EXPECT_FALSE(runner.go_on());
  EXPECT_FALSE(SpinWait(policy, habits[1], Waiter::runner, clock_).spins());
  caller.stop();
  EXPECT_TRUE(SpinWait(policy, habits[1], Waiter::runner, clock_).spins());
}

TEST_F(SpinPolicyTest, SP5_WithoutABudgetNoClockIsLookedAt) {
  SpinPolicy policy({});
  CountingClock clock;
  SpinHabit habit;
  {
    SpinWait wait(policy, habit, Waiter::caller, clock);
    EXPECT_FALSE(wait.go_on());
  }
  EXPECT_EQ(clock.looks, 0);
}

TEST_F(SpinPolicyTest, SP7_ItEndsWithItsLimitForGood) {
  SpinPolicy policy(kAlways);
  SpinHabit habit;
  SpinWait wait(policy, habit, Waiter::caller, clock_);
  clock_.advance(19us);
  EXPECT_TRUE(wait.go_on());
  clock_.advance(1us);
  EXPECT_FALSE(wait.go_on());
  EXPECT_FALSE(wait.spins());
  EXPECT_EQ(policy.counts().won, 0U);
  SpinHabit other;
  EXPECT_TRUE(SpinWait(policy, other, Waiter::caller, clock_).spins()) << "its place is free";
}

TEST_F(SpinPolicyTest, WhatFoundSomethingIsCounted) {
  SpinPolicy policy(kAlways);
  Thread thread(policy, clock_);
  thread.wait(10us);
  thread.wait(30us);
  EXPECT_EQ(policy.counts().spins, 2U);
  EXPECT_EQ(policy.counts().won, 1U);
}

TEST_F(SpinPolicyTest, SP8_TwoGapsSoonAfterEachOtherKeepTheThreadFromSpinning) {
  SpinPolicy policy(kAlways, &count_lost);
  Thread thread(policy, clock_);
  Thread other(policy, clock_);
  EXPECT_TRUE(thread.lose_core(401us));
  clock_.advance(99ms);
  EXPECT_FALSE(thread.lose_core(401us));
  EXPECT_FALSE(thread.may_spin());
  EXPECT_TRUE(other.may_spin()) << "it has not lost its core";
  clock_.advance(99ms);
  EXPECT_FALSE(thread.may_spin());
  clock_.advance(1ms);
  EXPECT_TRUE(thread.may_spin());
}

TEST_F(SpinPolicyTest, SP8_GapsFarApartOrShortOnesAreNoNeighbours) {
  SpinPolicy policy(kAlways, &count_lost);
  Thread thread(policy, clock_);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(thread.lose_core(400us));
    EXPECT_TRUE(thread.lose_core(401us));
    clock_.advance(101ms);
  }
}

TEST_F(SpinPolicyTest, SP8_AnInterruptIsNoNeighbourHoweverLongItTakes) {
  SpinPolicy policy(kAlways, &count_lost);
  Thread thread(policy, clock_);
  thread.lose_core(401us);
  clock_.advance(101ms);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(thread.is_interrupted(2ms));
  EXPECT_TRUE(thread.lose_core(401us)) << "the first within 100 ms";
  EXPECT_FALSE(thread.lose_core(401us));
}

TEST_F(SpinPolicyTest, SP8_TheKernelCountsTheCoresThatAThreadLoses) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> ended{false};
  std::thread neighbour([&] {  // has the same core
    while (!ended) {
    }
  });
  const std::uint64_t before = count_lost_cores();
  while (count_lost_cores() == before) {
  }
  ended = true;
  neighbour.join();
  EXPECT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
}

TEST_F(SpinPolicyTest, SP8_TimeSpentReadingIsNoGap) {
  SpinPolicy policy({.threads = 1, .longest = 10ms, .learns = false, .cores = 2}, &count_lost);
  SpinHabit habit;
  SpinWait wait(policy, habit, Waiter::caller, clock_);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(wait.go_on());
    clock_.advance(500us);
    ++lost_cores;
    wait.worked();
  }
}

TEST_F(SpinPolicyTest, SP8_EachTimeItIsTwiceAsLongUpToTenSeconds) {
  SpinPolicy policy(kAlways, &count_lost);
  Thread thread(policy, clock_);
  for (const auto time : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 10000ms, 10000ms}) {
    ASSERT_TRUE(thread.lose_core(401us));
    ASSERT_FALSE(thread.lose_core(401us));
    clock_.advance(time - 1us);
    EXPECT_FALSE(thread.may_spin()) << time.count();
    clock_.advance(1us);
    EXPECT_TRUE(thread.may_spin()) << time.count();
    clock_.advance(101ms);
  }
  clock_.advance(10s);
  thread.lose_core(401us);
  thread.lose_core(401us);
  clock_.advance(100ms);
  EXPECT_TRUE(thread.may_spin()) << "as the first time";
}

TEST_F(SpinPolicyTest, SP8_WithMoreTasksThanCoresTwiceInARowNoThreadSpins) {
  SpinPolicy policy(kAlways);
  Thread thread(policy, clock_);
  Thread other(policy, clock_);
  policy.look(3, clock_.now());
  EXPECT_TRUE(thread.may_spin()) << "once may be chance";
  policy.look(2, clock_.now());
  policy.look(3, clock_.now());
  EXPECT_TRUE(thread.may_spin()) << "not in a row";
  SpinHabit habit;
  SpinWait wait(policy, habit, Waiter::caller, clock_);
  policy.look(3, clock_.now());
  EXPECT_FALSE(wait.go_on()) << "who spins stops";
  EXPECT_FALSE(thread.may_spin());
  EXPECT_FALSE(other.may_spin());
  clock_.advance(100ms);
  EXPECT_TRUE(thread.may_spin());
}

TEST_F(SpinPolicyTest, SP8_SP9_TasksAreLookedAtWhileAThreadSpins) {
  SpinPolicy policy(kAlways);
  Thread thread(policy, clock_);
  EXPECT_FALSE(policy.wants_look());
  thread.wait(10us);
  EXPECT_TRUE(policy.wants_look());
  EXPECT_FALSE(policy.wants_look()) << "one looks";
  EXPECT_TRUE(policy.look(1, clock_.now()));
  thread.wait(10us);
  EXPECT_TRUE(policy.look(1, clock_.now()));
  EXPECT_FALSE(policy.look(1, clock_.now())) << "no thread has spun since";
  EXPECT_FALSE(policy.wants_look());
  thread.wait(10us);
  EXPECT_TRUE(policy.wants_look());
}

}  // namespace
}  // namespace caftan::transport::spin_policy_test
