#include "caftan/transport/threaded_executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "address_space.hpp"
#include "caftan/base/wait_permit.hpp"

namespace caftan::transport::threaded_executor_test {
namespace {

using namespace std::chrono_literals;

thread_local bool prepared = false;

/// As long as an object of this class lives, new threads have stacks of `bytes` bytes.
class StackSize {
 public:
  explicit StackSize(std::size_t bytes) {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t now;
    EXPECT_EQ(::pthread_getattr_default_np(&now), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&now, bytes), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&now), 0);
    ::pthread_attr_destroy(&now);
  }
  ~StackSize() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    ::pthread_attr_destroy(&before_);
  }
  StackSize(const StackSize&) = delete;
  StackSize& operator=(const StackSize&) = delete;

 private:
  pthread_attr_t before_;
};

/// As long as an object of this class lives, the system gives no threads: their stacks would be too large.
class NoThreads {
  const StackSize size_{std::size_t{1} << 46};
};

/// As long as an object of this class lives, the system gives two threads at most: there is no room for a third stack.
class TwoThreads {
  static constexpr std::size_t kStack = std::size_t{1} << 29;
  const StackSize size_{kStack};
  // Room for two stacks and for what threads allocate, not for a third stack.
  const test::AddressSpaceLimit room_{2 * kStack + kStack / 4 * 3};
};

TEST(ThreadedExecutor, EveryThreadBeginsWithOnThreadStart) {
  ThreadedExecutor executor({.runners = 1, .max_threads = 2, .on_thread_start = [] { prepared = true; }});
  std::promise<bool> blocked;
  std::promise<bool> replacement;
  executor.post([&] {
    blocked.set_value(prepared);
    executor.with_wait([&](base::Executor::Wait& wait) {
      executor.post([&] {
        replacement.set_value(prepared);
        wait.point().notify();
      });
      wait.wait(base::kNever, nullptr);
    });
  });
  EXPECT_TRUE(blocked.get_future().get());
  EXPECT_TRUE(replacement.get_future().get());
}

TEST(ThreadedExecutor, OneRunnerGetsNoPermitToWait) {
  std::promise<std::vector<bool>> first;
  std::promise<bool> again;
  ThreadedExecutor executor({.runners = 1, .max_threads = 3});
  executor.post([&] {
    const auto wait_for = [&](auto&& task) {
      executor.with_wait([&](base::Executor::Wait& wait) {
        executor.post([&] {
          task();
          wait.point().notify();
        });
        wait.wait(base::kNever, nullptr);
      });
    };
    std::vector<bool> granted;
    {
      const base::WaitPermit one;
      wait_for([&] {
        const base::WaitPermit two;
        wait_for([&] {
          const base::WaitPermit three;
          granted = {static_cast<bool>(one), static_cast<bool>(two), static_cast<bool>(three)};
          EXPECT_EQ(three.error().code(), Errc::overloaded);
        });
      });
    }
    first.set_value(granted);
    again.set_value(static_cast<bool>(base::WaitPermit()));
  });
  EXPECT_EQ(first.get_future().get(), (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(again.get_future().get());
  EXPECT_TRUE(base::WaitPermit()) << "this thread is no runner";
}

TEST(ThreadedExecutor, WaitsThatCannotFailLeaveARunnerAtAnyLimit) {
  std::promise<int> deepest;
  std::function<void(int)> nest;
  ThreadedExecutor executor({.runners = 1, .max_threads = 1});
  nest = [&](int depth) {
    if (depth == 5) return deepest.set_value(depth);
    executor.with_wait([&](base::Executor::Wait& wait) {
      executor.post_at(executor.clock().now(), [&, depth] {
        nest(depth + 1);
        wait.point().notify();
      });
      wait.wait(base::kNever, nullptr);
    });
  };
  executor.post([&] { nest(0); });
  EXPECT_EQ(deepest.get_future().get(), 5);
}

TEST(ThreadedExecutor, ARunnerThatWaitsWithAnotherExecutorIsReplaced) {
  std::promise<bool> notified;
  ThreadedExecutor other({.runners = 1});
  ThreadedExecutor executor({.runners = 1});
  executor.post([&] {
    other.with_wait([&](base::Executor::Wait& wait) {
      executor.post([&] { wait.point().notify(); });
      notified.set_value(wait.wait(base::kNever, nullptr));
    });
  });
  EXPECT_TRUE(notified.get_future().get());
}

TEST(ThreadedExecutor, T5_ATimerIsOnTimeBesideAnIdleRunner) {
  ThreadedExecutor executor({.runners = 2});
  const auto pause = [&](base::Duration duration) {
    executor.with_wait([&](base::Executor::Wait& wait) { wait.wait(executor.clock().now() + duration, nullptr); });
  };
  for (int round = 0; round < 3; ++round) {
    std::promise<void> fired;
    std::promise<bool> in_time;
    pause(10ms);  // both sleep
    executor.post_at(executor.clock().now() + 40ms, [&] { fired.set_value(); });
    pause(10ms);  // and again
    executor.post([&] { in_time.set_value(fired.get_future().wait_for(20s) == std::future_status::ready); });
    EXPECT_TRUE(in_time.get_future().get());
  }
}

TEST(ThreadedExecutor, T1_TimeIsKeptWhileAllRunnersCompute) {
  std::promise<void> kept;
  const std::shared_future<void> is_kept(kept.get_future());
  std::promise<bool> in_time[2];
  ThreadedExecutor executor({.runners = 2});
  for (auto& each : in_time) {
    executor.post([&] { each.set_value(is_kept.wait_for(20s) == std::future_status::ready); });
  }
  executor.keep_time(executor.clock().now() + 1ms, [&] { kept.set_value(); });
  for (auto& each : in_time) EXPECT_TRUE(each.get_future().get());
}

TEST(ThreadedExecutor, T1_WhatIsDueGoesAheadOfTheQueue) {
  std::vector<char> order;
  std::promise<void> posted;
  std::promise<void> all;
  ThreadedExecutor executor({.runners = 1});
  executor.post([&] {
    for (int i = 0; i < 100; ++i) executor.post([&] { order.push_back('q'); });
    executor.post([&] { all.set_value(); });
    executor.post_at(executor.clock().now(), [&] { order.push_back('d'); });
    // Due timers are handed to the runners in order: when this callback runs, the timer before it is in the queue.
    std::promise<void> passed;
    executor.keep_time(executor.clock().now(), [&] { passed.set_value(); });
    passed.get_future().get();
  });
  all.get_future().get();
  EXPECT_EQ(order.front(), 'd');
  EXPECT_EQ(order.size(), 101U);
}

class FlushFlag final : public Flushable {
 public:
  void flush() override { flushed.set_value(); }
  std::promise<void> flushed;
};

TEST(ThreadedExecutor, T6_WhatUserCodeLeavesForTheEndOfItsTaskIsDoneBefore) {
  ThreadedExecutor executor({.runners = 2});
  const auto flag = std::make_shared<FlushFlag>();
  std::promise<std::pair<bool, bool>> in_time;
  executor.with_wait(
      [&](base::Executor::Wait& wait) { wait.wait(executor.clock().now() + 10ms, nullptr); });  // both runners sleep
  executor.post([&] {
    const base::UserCode running;
    executor.flush_later(flag, FlushBy::queue_end);
    const bool flushed = flag->flushed.get_future().wait_for(20s) == std::future_status::ready;
    std::promise<void> ran;
    {
      const base::Executor::DeferWakeups deferred(executor);
      executor.post([&] { ran.set_value(); });
    }
    in_time.set_value({flushed, ran.get_future().wait_for(20s) == std::future_status::ready});
  });
  EXPECT_EQ(in_time.get_future().get(), std::make_pair(true, true));
}

TEST(ThreadedExecutor, H10_CALL19_CallsThatWereHeldBackGoAheadOfLaterOnesOfTheirDepth) {
  ThreadedExecutor executor({.runners = 1, .max_threads = 32});
  std::string order;
  std::promise<void> all_ran;
  executor.post([&] {
    base::RunnerLimit& limit = *base::RunnerLimit::current();
    EXPECT_TRUE(limit.may_begin(0));
    limit.hold_call(0, [&] { order += "b"; });
    limit.hold_call(2, [&] { order += "a"; });
    limit.hold_call(0, [&] {
      order += "c";
      all_ran.set_value();
    });
    EXPECT_FALSE(limit.may_begin(0)) << "there are waits, but an older one comes first";
    EXPECT_FALSE(limit.may_begin(2));
    EXPECT_TRUE(limit.may_begin(3)) << "it is nested deeper than all of them";
  });
  all_ran.get_future().get();
  EXPECT_EQ(order, "abc");
}

TEST(ThreadedExecutor, H10_CALL16_OuterCallsBeginOnlyWhereEnoughWaitsAreLeft) {
  constexpr unsigned kMayWait = 31 - 12;  // of 31 permits 12 are kept for nested calls
  ThreadedExecutor executor({.runners = 1, .max_threads = 32});
  std::mutex mutex;
  std::vector<base::WaitPoint*> waiting;
  std::promise<void> all_wait;
  std::function<void()> wait_once = [&] {
    const base::WaitPermit permit;
    EXPECT_TRUE(permit);
    executor.with_wait([&](base::Executor::Wait& wait) {
      {
        const std::lock_guard lock(mutex);
        waiting.push_back(&wait.point());
        if (waiting.size() < kMayWait) {
          executor.post(wait_once);
        } else {
          all_wait.set_value();
        }
      }
      wait.wait(base::kNever, nullptr);
      const std::lock_guard lock(mutex);  // waits until the notifying thread has left the wait point
    });
  };
  executor.post(wait_once);
  all_wait.get_future().get();
  std::promise<void> ran;
  executor.post([&] {
    base::RunnerLimit& limit = *base::RunnerLimit::current();
    EXPECT_FALSE(limit.may_begin(0));
    EXPECT_TRUE(limit.may_begin(4));
    limit.hold_call(0, [&] { ran.set_value(); });
    const std::lock_guard lock(mutex);
    for (base::WaitPoint* point : waiting) point->notify();
  });
  ran.get_future().get();
}

TEST(ThreadedExecutor, T7_AWaitForWhichTheSystemGivesNoThreadIsRefused) {
  ThreadedExecutor executor({.runners = 1});
  std::promise<void> done;
  executor.post([&] {
    {
      const NoThreads none;
      const base::WaitPermit refused;
      EXPECT_FALSE(refused);
      EXPECT_EQ(refused.error().code(), Errc::overloaded);
      EXPECT_NE(refused.error().text().find("the system gives no more threads"), std::string::npos);
    }
    EXPECT_TRUE(base::WaitPermit());
    done.set_value();
  });
  done.get_future().get();
}

TEST(ThreadedExecutor, T7_AWaitThatCannotFailIsReplacedWhenThereAreThreadsAgain) {
  ThreadedExecutor executor({.runners = 1});
  std::optional<NoThreads> none;
  std::promise<void> waits;
  std::promise<bool> notified;
  executor.post([&] {
    none.emplace();
    executor.with_wait([&](base::Executor::Wait& wait) {
      executor.post([&] { wait.point().notify(); });  // runs on another thread, because this one waits
      executor.keep_time(executor.clock().now() + 1ms, [&] { waits.set_value(); });
      notified.set_value(wait.wait(base::kNever, nullptr));
    });
  });
  waits.get_future().get();
  none.reset();
  EXPECT_TRUE(notified.get_future().get());
}

TEST(ThreadedExecutor, T7_GoesOnWithFewerRunnersWhereTheSystemGivesNoMoreThreads) {
  std::optional<TwoThreads> few(std::in_place);  // room for the thread that keeps time, and for one runner of three
  std::promise<std::string> refused;
  std::promise<bool> granted;
  ThreadedExecutor executor({.runners = 3});
  executor.post([&] {
    const base::WaitPermit permit;
    refused.set_value(permit ? "" : permit.error().text());
  });
  EXPECT_THAT(refused.get_future().get(), ::testing::StartsWith("0 of 1 runners wait already"));
  few.reset();
  executor.post([&] { granted.set_value(static_cast<bool>(base::WaitPermit())); });
  EXPECT_TRUE(granted.get_future().get());
}

TEST(ThreadedExecutor, T7_WithoutAnyThreadItIsAnExceptionNotAnAbort) {
  const NoThreads none;
  EXPECT_THROW(ThreadedExecutor({.runners = 1}), std::system_error);
}

/// Nothing ever arrives here.
class SilentSource final : public ClaimableSource {
 public:
  SilentSource() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~SilentSource() override {
    for (const int end : ends_) ::close(end);
  }
  bool claim() override { return true; }
  int claim_fd() const noexcept override { return ends_[0]; }
  bool read_claimed() override { return true; }
  std::weak_ptr<ClaimableSource> release(bool) override { return {}; }
  void end_deferral() override {}

 private:
  std::array<int, 2> ends_{};
};

/// There is always something to read here.
class EndlessSource final : public ClaimableSource {
 public:
  /// @param sleeps  the source lets the thread sleep in poll, where its descriptor can be read at once
  explicit EndlessSource(bool sleeps) : sleeps_(sleeps) {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    EXPECT_EQ(::write(ends_[1], "x", 1), 1);
  }
  ~EndlessSource() override {
    for (const int end : ends_) ::close(end);
  }
  bool claim() override { return true; }
  int claim_fd() const noexcept override { return ends_[0]; }
  bool try_sleep() override { return sleeps_; }
  bool read_claimed() override {
    ++reads;
    return true;
  }
  std::weak_ptr<ClaimableSource> release(bool) override { return {}; }
  void end_deferral() override {}

  int reads = 0;

 private:
  const bool sleeps_;
  std::array<int, 2> ends_{};
};

TEST(ThreadedExecutor, DP3_APeerThatSendsWithoutEndHoldsNoThreadBeyondItsDeadline) {
  ThreadedExecutor executor({.runners = 1});
  for (const bool sleeps : {true, false}) {
    EndlessSource source(sleeps);
    executor.with_wait(
        [&](base::Executor::Wait& wait) { EXPECT_FALSE(wait.wait(executor.clock().now(), &source)) << sleeps; });
    EXPECT_EQ(source.reads, 1) << "what had arrived is read once: " << sleeps;
  }
}

// A notification may come at any moment between the making of a wait and its sleep, also from a thread that does not
// read the source.
TEST(ThreadedExecutor, AThreadThatReadsASourceMissesNoNotification) {
  constexpr int kWaits = 20'000;
  ThreadedExecutor executor({.runners = 1});
  SilentSource source;
  std::atomic<base::WaitPoint*> waiting{nullptr};
  std::thread notifier([&] {
    for (int i = 0; i < kWaits; ++i) {
      base::WaitPoint* point = nullptr;
      while (!(point = waiting.exchange(nullptr))) std::this_thread::yield();
      point->notify();
    }
  });
  for (int i = 0; i < kWaits; ++i) {
    executor.with_wait([&](base::Executor::Wait& wait) {
      waiting = &wait.point();
      EXPECT_TRUE(wait.wait(base::kNever, &source));
    });
  }
  notifier.join();
}

TEST(ThreadedExecutor, ATaskIsTheLastOneIfNoOtherWaitsAndNothingMoreIsToCome) {
  ThreadedExecutor executor({.runners = 1});
  EXPECT_FALSE(executor.runs_last_task()) << "no runner";
  std::promise<std::vector<bool>> done;
  executor.post([&] {
    std::vector<bool> found{executor.runs_last_task()};
    {
      const base::Executor::DeferWakeups actor(executor);
      found.push_back(executor.runs_last_task());
    }
    {
      const base::UserCode function;
      found.push_back(executor.runs_last_task());
    }
    executor.post([&, found]() mutable {
      found.push_back(executor.runs_last_task());
      done.set_value(found);
    });
    found.push_back(executor.runs_last_task());
    EXPECT_FALSE(found.back()) << "another task waits";
  });
  EXPECT_EQ(done.get_future().get(), (std::vector<bool>{true, false, false, true}));
}

}  // namespace
}  // namespace caftan::transport::threaded_executor_test
