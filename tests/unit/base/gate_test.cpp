// What is inside a gate is waited for, and nothing enters a closed one.
#include "caftan/base/internal/gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <new>
#include <thread>
#include <vector>

namespace caftan::gate_test {
namespace {

/// Waits without a runner: `meanwhile` is called in each wait, and a wait for ever blocks its thread until notified.
class PlainExecutor final : public base::Executor {
 public:
  void post(base::Task) override {}
  void post_at(base::TimePoint, base::Task) override {}
  const base::Clock& clock() const noexcept override { return clock_; }
  bool inside_reading_wait() const noexcept override { return false; }

  std::function<void()> meanwhile = [] {};

 private:
  class PlainWait final : public Wait, public base::WaitPoint {
   public:
    explicit PlainWait(PlainExecutor& executor) : executor_(executor) {}
    base::WaitPoint& point() noexcept override { return *this; }
    bool wait(base::TimePoint deadline, base::ReadableSource*) override {
      executor_.meanwhile();
      if (deadline == base::kNever) notified_.wait(0);
      return notified_.load() != 0;
    }
    void notify() noexcept override {
      EXPECT_EQ(notified_.fetch_add(1), 0) << "notified twice";
      notified_.notify_one();
    }

   private:
    PlainExecutor& executor_;
    std::atomic<int> notified_{0};
  };
  Wait* make_wait(std::byte* room) override {
    static_assert(sizeof(PlainWait) <= kWaitSize);
    return new (room) PlainWait(*this);
  }

  base::ManualClock clock_;
};

TEST(Gate, AnEmptyOneIsNotWaitedFor) {
  PlainExecutor executor;
  executor.meanwhile = [] { FAIL() << "waits"; };
  base::Gate gate;
  EXPECT_TRUE(gate.wait_until_empty(executor, base::kNever));
  EXPECT_TRUE(gate.enter());
  gate.leave();
  EXPECT_TRUE(gate.wait_until_empty(executor, base::kNever));
}

TEST(Gate, TheLastOneThatLeavesEndsTheWait) {
  PlainExecutor executor;
  base::Gate gate;
  ASSERT_TRUE(gate.enter() && gate.enter());
  executor.meanwhile = [&] {
    gate.leave();
    EXPECT_EQ(gate.inside(), 1U);
    gate.leave();
  };
  EXPECT_TRUE(gate.wait_until_empty(executor, base::kNever));
  EXPECT_EQ(gate.inside(), 0U);
}

TEST(Gate, AWaitEndsAtItsDeadlineAndIsNotNotifiedLater) {
  PlainExecutor executor;
  base::Gate gate;
  ASSERT_TRUE(gate.enter());
  EXPECT_FALSE(gate.wait_until_empty(executor, executor.clock().now()));
  gate.leave();  // its wait point is gone
  EXPECT_TRUE(gate.wait_until_empty(executor, executor.clock().now()));
}

TEST(Gate, TheLastOneThatLeavesEndsAllWaits) {
  PlainExecutor executor;
  base::Gate gate;
  ASSERT_TRUE(gate.enter());
  int waits = 0;
  executor.meanwhile = [&] {
    if (++waits == 1) {
      EXPECT_TRUE(gate.wait_until_empty(executor, base::kNever)) << "the second one waits while the first one does";
    } else {
      gate.leave();
    }
  };
  EXPECT_TRUE(gate.wait_until_empty(executor, base::kNever));
  EXPECT_EQ(waits, 2);
}

TEST(Gate, AClosedOneLetsNothingInButPartsOfWhatIsInside) {
  base::Gate gate;
  const base::Gate::Visit early(gate);
  gate.close();
  EXPECT_TRUE(gate.is_closed());
  EXPECT_TRUE(early);
  EXPECT_FALSE(base::Gate::Visit(gate));
  EXPECT_FALSE(gate.enter());
  EXPECT_EQ(gate.inside(), 1U) << "those that were refused do not count";
  gate.enter_as_part();
  EXPECT_EQ(gate.inside(), 2U);
  gate.leave();
}

TEST(Gate, TheThreadThatClosesAndWaitsSeesTheEndOfAllThatEntered) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    PlainExecutor executor;
    base::Gate gate;
    std::atomic<bool> ended{false};
    std::atomic<int> late{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        while (true) {
          const base::Gate::Visit visit(gate);
          if (!visit) return;
          if (ended.load()) ++late;
        }
      });
    }
    gate.close();
    EXPECT_TRUE(gate.wait_until_empty(executor, base::kNever));
    ended.store(true);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(late.load(), 0);
  }
}

}  // namespace
}  // namespace caftan::gate_test
