#include "caftan/transport/threaded_executor.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <vector>

namespace caftan::transport {
namespace {

thread_local bool prepared = false;

TEST(ThreadedExecutor, EveryThreadBeginsWithOnThreadStart) {
  ThreadedExecutor executor({.runners = 1, .max_threads = 2, .on_thread_start = [] { prepared = true; }});
  std::promise<bool> blocked;
  std::promise<bool> replacement;
  executor.post([&] {
    blocked.set_value(prepared);
    executor.with_wait([&](Executor::Wait& wait) {
      executor.post([&] {
        replacement.set_value(prepared);
        wait.point().notify();
      });
      wait.wait(kNever, nullptr);
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
      executor.with_wait([&](Executor::Wait& wait) {
        executor.post([&] {
          task();
          wait.point().notify();
        });
        wait.wait(kNever, nullptr);
      });
    };
    std::vector<bool> granted;
    {
      const WaitPermit one;
      wait_for([&] {
        const WaitPermit two;
        wait_for([&] {
          const WaitPermit three;
          granted = {static_cast<bool>(one), static_cast<bool>(two), static_cast<bool>(three)};
          EXPECT_EQ(three.error().code(), Errc::overloaded);
        });
      });
    }
    first.set_value(granted);
    again.set_value(static_cast<bool>(WaitPermit()));
  });
  EXPECT_EQ(first.get_future().get(), (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(again.get_future().get());
  EXPECT_TRUE(WaitPermit()) << "this thread is no runner";
}

TEST(ThreadedExecutor, WaitsThatCannotFailLeaveARunnerAtAnyLimit) {
  std::promise<int> deepest;
  std::function<void(int)> nest;
  ThreadedExecutor executor({.runners = 1, .max_threads = 1});
  nest = [&](int depth) {
    if (depth == 5) return deepest.set_value(depth);
    executor.with_wait([&](Executor::Wait& wait) {
      executor.post_at(executor.clock().now(), [&, depth] {
        nest(depth + 1);
        wait.point().notify();
      });
      wait.wait(kNever, nullptr);
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
    other.with_wait([&](Executor::Wait& wait) {
      executor.post([&] { wait.point().notify(); });
      notified.set_value(wait.wait(kNever, nullptr));
    });
  });
  EXPECT_TRUE(notified.get_future().get());
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

// A notification may come at any moment between the making of a wait and its sleep, also from a thread that does not
// read the source.
TEST(ThreadedExecutor, AThreadThatReadsASourceMissesNoNotification) {
  constexpr int kWaits = 20'000;
  ThreadedExecutor executor({.runners = 1});
  SilentSource source;
  std::atomic<WaitPoint*> waiting{nullptr};
  std::thread notifier([&] {
    for (int i = 0; i < kWaits; ++i) {
      WaitPoint* point = nullptr;
      while (!(point = waiting.exchange(nullptr))) std::this_thread::yield();
      point->notify();
    }
  });
  for (int i = 0; i < kWaits; ++i) {
    executor.with_wait([&](Executor::Wait& wait) {
      waiting = &wait.point();
      EXPECT_TRUE(wait.wait(kNever, &source));
    });
  }
  notifier.join();
}

}  // namespace
}  // namespace caftan::transport
