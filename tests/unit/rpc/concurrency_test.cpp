// Strands and futures under real threads. The outcomes do not depend on timing; races are found by the thread
// sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "caftan/rpc/strand.hpp"
#include "caftan/rpc/wait.hpp"

namespace caftan::concurrency_test {
namespace {

/// An executor with as many threads as there are tasks that have not ended.
class GrowingPool final : public base::Executor {
 public:
  ~GrowingPool() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  void post(base::Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > idle_) threads_.emplace_back([this] { work(); });
    changed_.notify_one();
  }
  void post_at(base::TimePoint, base::Task) override { FAIL() << "no timers here"; }
  const base::Clock& clock() const noexcept override { return clock_; }
  bool inside_reading_wait() const noexcept override { return false; }

 protected:
  Wait* make_wait(std::byte* room) override { return ::new (room) BlockingWait; }

 private:
  class BlockingWait final : public base::Executor::Wait, public base::WaitPoint {
   public:
    base::WaitPoint& point() noexcept override { return *this; }
    void notify() noexcept override {
      const std::lock_guard lock(mutex_);
      done_ = true;
      changed_.notify_one();
    }
    bool wait(base::TimePoint, base::ReadableSource*) override {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return done_; });
      return true;
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
  };

  void work() {
    Ambient ambient;
    ambient.executor = this;
    const AmbientSwap swap(&ambient);
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      base::Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  base::SteadyClock clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<base::Task> tasks_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

/// Waits until done() was called `count` times.
class Countdown {
 public:
  explicit Countdown(int count) : left_(count) {}
  void done() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) all_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    all_.wait(lock, [this] { return left_ == 0; });
  }
  /// Returns whether done() was called `count` times within `limit`.
  bool wait_for(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    return all_.wait_for(lock, limit, [this] { return left_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int left_;
};

TEST(Concurrency, CALL7_SerialJobsFromManyThreadsNeverOverlap) {
  constexpr int kThreads = 4, kJobs = 500;
  GrowingPool pool;
  rpc::Strand strand(pool);
  Countdown left(kThreads * kJobs);
  long sum = 0;  // not atomic, because only the strand keeps threads apart
  for (int t = 0; t < kThreads; ++t) {
    pool.post([&] {
      for (int i = 0; i < kJobs; ++i) {
        strand.run([&] {
          ++sum;
          left.done();
        });
      }
    });
  }
  left.wait();
  long seen = 0;
  Countdown last(1);
  strand.run([&] {
    seen = sum;
    last.done();
  });
  last.wait();
  EXPECT_EQ(seen, kThreads * kJobs);
}

TEST(Concurrency, CALL7_JobsThatWaitInTheMiddleNeverOverlapElsewhere) {
  constexpr int kJobs = 300;
  GrowingPool pool;
  rpc::Strand strand(pool);
  Countdown left(kJobs);
  long sum = 0;
  for (int i = 0; i < kJobs; ++i) {
    pool.post([&] {
      strand.run([&] {
        ++sum;
        Promise<int> promise;
        Future<int> future = promise.future();
        pool.post([p = std::move(promise)]() mutable { p.set(1); });
        sum += future.get();
        EXPECT_TRUE(strand.is_held_here());
        left.done();
      });
    });
  }
  left.wait();
  Countdown last(1);
  strand.run([&] {
    EXPECT_EQ(sum, 2 * kJobs);
    last.done();
  });
  last.wait();
}

TEST(Concurrency, CALL7_ConcurrentJobsReadWhatSerialOnesWrote) {
  constexpr int kJobs = 400;
  GrowingPool pool;
  rpc::Strand strand(pool);
  Countdown left(kJobs);
  long a = 0, b = 0;
  std::atomic<int> readers{0};
  for (int i = 0; i < kJobs; ++i) {
    pool.post([&, i] {
      if (i % 4 == 0) {
        strand.run([&] {
          ++a;
          // Yields, so that jobs which could wrongly run at the same time get the time to do so.
          for (int turn = 0; turn < 20; ++turn) std::this_thread::yield();
          EXPECT_EQ(readers, 0);
          ++b, left.done();
        });
      } else {
        strand.run(
            [&] {
              ++readers;
              EXPECT_EQ(a, b);
              std::this_thread::yield();
              --readers;
              left.done();
            },
            TurnMode::concurrent);
      }
    });
  }
  left.wait();
}

TEST(Concurrency, CALL7_M15_ConcurrentJobsRunAtTheSameTime) {
  constexpr int kJobs = 3;
  GrowingPool pool;
  rpc::Strand strand(pool);
  Countdown met(kJobs), left(kJobs);
  std::atomic<int> together{0};
  for (int i = 0; i < kJobs; ++i) {
    pool.post([&] {
      strand.run(
          [&] {
            met.done();
            // If these jobs ran one after another, each would wait here for the others in vain until the limit.
            if (met.wait_for(std::chrono::seconds(20))) ++together;
            left.done();
          },
          TurnMode::concurrent);
    });
  }
  left.wait();
  EXPECT_EQ(together, kJobs);
}

TEST(Concurrency, CALL1_OneOfSetAndCancelDecidesEachFuture) {
  constexpr int kFutures = 500;
  GrowingPool pool;
  for (int i = 0; i < kFutures; ++i) {
    Promise<int> promise;
    Future<int> future = promise.future();
    Countdown both(2);
    bool set = false, cancelled = false;
    int continued = 0;
    auto after = future.then([&](Result<int>) { ++continued; });
    pool.post([&] {
      set = promise.set(1);
      both.done();
    });
    pool.post([&] {
      cancelled = future.cancel();
      both.done();
    });
    both.wait();
    EXPECT_NE(set, cancelled);
    EXPECT_EQ(continued, 1);
    EXPECT_EQ(future.result().has_value(), set);
  }
}

TEST(Concurrency, WaitAllSeesValuesSetByOtherThreads) {
  GrowingPool pool;
  for (int round = 0; round < 50; ++round) {
    std::vector<Future<int>> futures;
    for (int i = 0; i < 8; ++i) {
      Promise<int> promise;
      futures.push_back(promise.future());
      pool.post([p = std::move(promise), i]() mutable { p.set(i); });
    }
    EXPECT_TRUE(wait_any(futures).has_value());
    EXPECT_EQ(wait_all(futures), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

}  // namespace
}  // namespace caftan::concurrency_test
