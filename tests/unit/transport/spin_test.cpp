// Threads that wait without sleep: what begins and what ends it, and that it ends. Counted in looks and spins.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "caftan/transport/threaded_executor.hpp"

namespace caftan::transport::spin_test {
namespace {

using namespace std::chrono_literals;

/// Spins as long as nothing else ends it.
constexpr SpinOptions kEndless{.threads = 1, .longest = 1h, .learns = false, .cores = 1'000'000};
/// Each spin has one turn.
constexpr SpinOptions kOneTurn{.threads = 1, .longest = 1ns, .learns = false, .cores = 1'000'000};

/// A source whose looks a test scripts.
class Source final : public ClaimableSource {
 public:
  Source() : fd_(::eventfd(0, EFD_NONBLOCK)) {}
  ~Source() override { ::close(fd_); }

  bool claim() override { return true; }
  int claim_fd() const noexcept override { return fd_; }
  bool try_sleep() override {
    ++sleeps;
    if (on_sleep) on_sleep();
    return true;
  }
  Look look() const override { return on_look(++looks); }
  void stay_awake() override { ++awake; }
  bool read_claimed() override {
    ++reads;
    return on_read(reads);
  }
  std::weak_ptr<ClaimableSource> release(bool) override {
    ++releases;
    return {};
  }
  void end_deferral() override {}

  bool begin_spin() override { return ++begins, true; }
  Look look_as_runner() const override { return on_look(++looks); }
  void end_spin() override {
    ++ends;
    ends.notify_all();
  }
  void read_as_runner() override {
    ++reads;
    (void)on_read(reads);
  }

  std::function<Look(int)> on_look = [](int) { return Look::nothing; };  // by the number of the look
  std::function<bool(int)> on_read = [](int) { return true; };           // by the number of the read
  std::function<void()> on_sleep;
  mutable std::atomic<int> looks{0};
  std::atomic<int> reads{0}, sleeps{0}, awake{0}, releases{0}, begins{0}, ends{0};

 private:
  const int fd_;
};

/// Runs `body` on a thread that has not waited before.
void on_new_thread(const std::function<void()>& body) { std::thread(body).join(); }

/// Waits for `deadline` while `source` is looked at.
bool wait(
    ThreadedExecutor& executor, Source& source, base::TimePoint deadline,
    const std::function<void(base::WaitPoint&)>& before = [](base::WaitPoint&) {}) {
  bool notified = false;
  on_new_thread([&] {
    notified = executor.with_wait([&](base::Executor::Wait& wait) {
      before(wait.point());
      return wait.wait(deadline, &source);
    });
  });
  return notified;
}

TEST(Spin, SP6_TheDeadlineEndsTheSpinOfACaller) {
  ThreadedExecutor executor({.runners = 1, .spin = kEndless});
  Source source;
  EXPECT_FALSE(wait(executor, source, executor.clock().now()));
  EXPECT_EQ(source.sleeps, 0);
  EXPECT_EQ(source.awake, 1);
  EXPECT_EQ(source.releases, 1);
  EXPECT_EQ(executor.spins().won, 0U);
}

TEST(Spin, SP6_ANotificationEndsTheSpinOfACaller) {
  ThreadedExecutor executor({.runners = 1, .spin = kEndless});
  Source source;
  base::WaitPoint* waiting = nullptr;
  source.on_look = [&](int look) {
    if (look == 4) waiting->notify();  // a reply that another thread has read, a cancel, the loss of the peer
    return Look::nothing;
  };
  EXPECT_TRUE(wait(executor, source, base::kNever, [&](base::WaitPoint& point) { waiting = &point; }));
  EXPECT_EQ(source.looks, 4);
  EXPECT_EQ(source.sleeps, 0);
  EXPECT_EQ(executor.spins().won, 1U);
}

TEST(Spin, SP6_BytesAreReadAndTheSpinGoesOnUntilTheReplyIsThere) {
  ThreadedExecutor executor({.runners = 1, .spin = kEndless});
  Source source;
  base::WaitPoint* waiting = nullptr;
  source.on_look = [](int look) { return look % 2 == 0 ? Look::something : Look::nothing; };
  source.on_read = [&](int read) {
    if (read == 3) waiting->notify();
    return true;
  };
  EXPECT_TRUE(wait(executor, source, base::kNever, [&](base::WaitPoint& point) { waiting = &point; }));
  EXPECT_EQ(source.reads, 3);
  EXPECT_EQ(source.sleeps, 0);
  EXPECT_EQ(executor.spins().spins, 1U);
}

TEST(Spin, SP6_WorkForRunnersEndsSpinAndClaimAtOnce) {
  ThreadedExecutor executor({.runners = 1, .spin = kEndless});
  Source source;
  source.on_look = [](int) { return Look::something; };
  source.on_read = [](int) { return false; };
  EXPECT_FALSE(wait(executor, source, executor.clock().now() + 1ms)) << "it has slept until its deadline";
  EXPECT_EQ(source.looks, 2) << "one before the spin";
  EXPECT_EQ(source.reads, 1);
  EXPECT_EQ(source.sleeps, 0) << "the session belongs to the runners";
  EXPECT_EQ(source.releases, 1);
}

/// Waits until a notification that comes when the thread is about to sleep.
void wait_until_asleep(ThreadedExecutor& executor, Source& source) {
  base::WaitPoint* waiting = nullptr;
  source.on_sleep = [&] { waiting->notify(); };
  EXPECT_TRUE(wait(executor, source, base::kNever, [&](base::WaitPoint& point) { waiting = &point; }));
  EXPECT_EQ(source.sleeps, 1);
}

TEST(Spin, SP3_TheEndOfWhatCanBeLookedAtIsTheEndOfTheSpin) {
  ThreadedExecutor executor({.runners = 1, .spin = kEndless});
  Source source;
  source.on_look = [](int look) { return look < 4 ? Look::nothing : Look::unable; };
  wait_until_asleep(executor, source);
  EXPECT_EQ(source.looks, 4);
}

TEST(Spin, SP7_ACallerSleepsOnceItsLimitIsOver) {
  ThreadedExecutor executor({.runners = 1, .spin = kOneTurn});
  Source source;
  wait_until_asleep(executor, source);
  EXPECT_EQ(executor.spins().spins, 1U);
  EXPECT_EQ(executor.spins().won, 0U);
}

/// Returns how many threads an executor of one runner has had when that runner has waited.
int threads_of_a_wait(const std::function<void(Source&, base::WaitPoint*&)>& script) {
  std::atomic<int> threads{0};
  Source source;
  base::WaitPoint* waiting = nullptr;
  script(source, waiting);
  {
    ThreadedExecutor executor(
        {.runners = 1, .max_threads = 4, .on_thread_start = [&] { ++threads; }, .spin = kEndless});
    std::promise<void> done;
    executor.post([&] {
      executor.with_wait([&](base::Executor::Wait& wait) {
        waiting = &wait.point();
        EXPECT_TRUE(wait.wait(base::kNever, &source));
      });
      done.set_value();
    });
    done.get_future().wait();
  }
  return threads;
}

TEST(Spin, SP2_ARunnerThatWaitsIsReplacedWhenItSleepsNotWhenItSpins) {
  EXPECT_EQ(threads_of_a_wait([](Source& source, base::WaitPoint*& waiting) {
              source.on_look = [&](int look) { return look == 4 ? waiting->notify() : void(), Look::nothing; };
            }),
            1);
  EXPECT_EQ(threads_of_a_wait([](Source& source, base::WaitPoint*& waiting) {
              source.on_look = [](int look) { return look < 4 ? Look::nothing : Look::unable; };
              source.on_sleep = [&] { waiting->notify(); };
            }),
            2);
}

TEST(Spin, SP3_ASourceThatCannotBeLookedAtIsSleptOnAtOnce) {
  ThreadedExecutor executor({.runners = 1, .spin = kEndless});
  Source source;
  source.on_look = [](int) { return Look::unable; };
  wait_until_asleep(executor, source);
  EXPECT_EQ(executor.spins().spins, 0U);
  EXPECT_EQ(source.awake, 0);
}

/// An executor of one runner that spins on a source when it is idle.
class IdleRunner {
 public:
  explicit IdleRunner(const SpinOptions& spin) : executor({.runners = 1, .spin = spin}) {}
  /// The runner has read the source, and is idle next.
  void begin() {
    executor.post([this] { executor.has_read(source); });
  }

  // The source outlives the executor, which is joined first.
  const std::shared_ptr<Source> source = std::make_shared<Source>();
  ThreadedExecutor executor;
};

TEST(Spin, SP6_AnIdleRunnerReadsWhatItSees) {
  IdleRunner runner(kEndless);
  std::promise<void> read;
  runner.source->on_look = [](int look) { return look == 5 ? Look::something : Look::nothing; };
  runner.source->on_read = [&](int) { return read.set_value(), true; };
  runner.begin();
  read.get_future().wait();
  EXPECT_GE(runner.executor.spins().won, 1U);
}

TEST(Spin, SP6_APostedTaskEndsTheSpinOfARunner) {
  IdleRunner runner(kEndless);
  std::promise<void> looked;
  runner.source->on_look = [&](int look) { return look == 3 ? looked.set_value() : void(), Look::nothing; };
  runner.begin();
  looked.get_future().wait();
  std::promise<int> ends;
  runner.executor.post([&] { ends.set_value(runner.source->ends); });
  EXPECT_EQ(ends.get_future().get(), 1) << "the peer's bell is armed before user code runs";
}

class Event final : public Pollable {
 public:
  Event() : fd_(::eventfd(1, EFD_NONBLOCK)) {}
  ~Event() override { ::close(fd_); }
  int fd() const noexcept override { return fd_; }
  void on_ready(std::uint32_t) override { came.set_value(); }
  std::promise<void> came;

 private:
  const int fd_;
};

TEST(Spin, SP6_AnEventOfASocketEndsTheSpinOfARunner) {
  IdleRunner runner(kEndless);
  std::promise<void> looked;
  runner.source->on_look = [&](int look) { return look == 3 ? looked.set_value() : void(), Look::nothing; };
  runner.begin();
  looked.get_future().wait();
  const auto event = std::make_shared<Event>();
  runner.executor.watch(event, EPOLLIN);
  event->came.get_future().wait();
  runner.executor.unwatch(*event);
}

TEST(Spin, SP7_ASourceThatAnotherThreadReadsEndsTheSpinOfARunner) {
  IdleRunner runner(kEndless);
  runner.source->on_look = [](int look) { return look < 3 ? Look::nothing : Look::unable; };
  runner.begin();
  runner.source->ends.wait(0);
  EXPECT_EQ(runner.source->looks, 3);
}

TEST(Spin, SP9_AnIdleRunnerSpinsOnceForEachTimeThatItBecomesIdle) {
  IdleRunner runner(kOneTurn);
  constexpr int kTimes = 20;
  for (int i = 0; i < kTimes; ++i) {
    runner.begin();
    runner.source->ends.wait(i);
  }
  // The runner sleeps, or is about to: it has no reason to spin again.
  EXPECT_EQ(runner.source->ends, kTimes);
  EXPECT_EQ(runner.executor.spins().spins, static_cast<unsigned>(kTimes));
  EXPECT_LE(runner.source->looks, kTimes) << "one turn each, at most";
}

TEST(Spin, SP9_ARunnerThatHasReadNoRingSleepsAtOnce) {
  ThreadedExecutor executor({.runners = 1, .spin = kEndless});
  std::promise<void> done;
  executor.post([&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(executor.spins().spins, 0U);
}

}  // namespace
}  // namespace caftan::transport::spin_test
