// How many threads an executor has for its work, how many of them may wait, and which calls begin later.
#include "caftan/transport/internal/crew.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace caftan::transport::crew_test {
namespace {

using Replacement = Crew::Replacement;

void add_threads(Crew& crew, unsigned count) {
  for (unsigned i = 0; i < count; ++i) crew.thread_added();
}

TEST(Crew, ARunnerThatWaitsIsReplacedUpToTheLimit) {
  Crew crew(2, 3);
  add_threads(crew, 2);
  EXPECT_EQ(crew.replace(), Replacement::none) << "two run";
  crew.enter_blocked();
  EXPECT_EQ(crew.replace(), Replacement::thread);
  crew.thread_added();
  EXPECT_EQ(crew.replace(), Replacement::none);
  crew.enter_blocked();
  EXPECT_EQ(crew.replace(), Replacement::none) << "one runs, and there may be no more";
  crew.enter_blocked();
  EXPECT_EQ(crew.replace(), Replacement::last_thread) << "beyond the limit: none runs";
}

TEST(Crew, AParkedThreadGoesOnBeforeANewOneIsMade) {
  Crew crew(2, 8);
  add_threads(crew, 3);
  crew.begin_idle();
  EXPECT_FALSE(crew.has_enough_idle());
  crew.begin_idle();
  EXPECT_TRUE(crew.has_enough_idle());
  crew.park();  // the third
  EXPECT_FALSE(crew.may_unpark());
  crew.end_idle();
  crew.enter_blocked();
  EXPECT_EQ(crew.replace(), Replacement::parked);
  EXPECT_TRUE(crew.may_unpark());
  EXPECT_EQ(crew.replace(), Replacement::thread) << "the parked one is on its way already";
  crew.unparked();
  EXPECT_FALSE(crew.may_unpark());
  EXPECT_EQ(crew.replace(), Replacement::none);
}

TEST(Crew, OneThreadStaysFree) {
  Crew crew(1, 3);
  crew.thread_added();
  EXPECT_TRUE(crew.has_permit());
  EXPECT_TRUE(crew.needs_thread_for_wait());
  crew.thread_added();
  EXPECT_FALSE(crew.needs_thread_for_wait());
  crew.begin_wait();
  EXPECT_TRUE(crew.has_permit());
  EXPECT_TRUE(crew.needs_thread_for_wait());
  EXPECT_EQ(
      crew.too_many_wait().text(),
      "1 of 2 runners wait already, one stays free, and the system gives no more threads (a limit of processes of "
      "the user or the container)");
  crew.thread_added();
  crew.begin_wait();
  EXPECT_FALSE(crew.has_permit());
  EXPECT_EQ(crew.too_many_wait().text(),
            "2 runners wait already; the limit is ThreadedExecutor::Options::max_threads = 3, one of them stays free");
  crew.end_wait();
  EXPECT_TRUE(crew.has_permit());
}

TEST(Crew, CALL16_TheDeepestCallThatIsHeldGoesFirst) {
  Crew crew(1, 33);
  crew.thread_added();
  std::vector<int> begun;
  crew.hold(0, [&begun] { begun.push_back(1); });
  crew.hold(2, [&begun] { begun.push_back(2); });
  crew.hold(0, [&begun] { begun.push_back(3); });
  EXPECT_FALSE(crew.may_begin_unasked(0));
  EXPECT_FALSE(crew.may_begin(0)) << "those that are held are before it";
  EXPECT_FALSE(crew.may_begin(2));
  EXPECT_TRUE(crew.may_begin(3));
  EXPECT_TRUE(crew.may_begin_unasked(4)) << "the greatest depth waits for none";
  EXPECT_FALSE(crew.may_wake_for_held()) << "none is idle";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(crew.may_take_held());
    crew.take_held()();
  }
  EXPECT_FALSE(crew.may_take_held());
  EXPECT_EQ(begun, (std::vector{2, 1, 3}));
  EXPECT_TRUE(crew.may_begin_unasked(0));
}

TEST(Crew, CALL16_WhatMightWaitCountsAsWhatWaits) {
  // 33 threads, one of which has to stay free. Each of the 4 depths below a call of depth 0 keeps 4 permits, so such a
  // call begins beside at most 32 - 16 - 1 others.
  Crew crew(1, 33);
  add_threads(crew, 16);
  EXPECT_TRUE(crew.may_begin(0));
  crew.thread_added();
  EXPECT_FALSE(crew.may_begin(0)) << "16 others run";
  EXPECT_TRUE(crew.may_begin(1));
  crew.begin_idle();
  EXPECT_TRUE(crew.may_begin(0)) << "one of them is idle";
  crew.begin_wait();
  EXPECT_FALSE(crew.may_begin(0)) << "one waits";
}

}  // namespace
}  // namespace caftan::transport::crew_test
