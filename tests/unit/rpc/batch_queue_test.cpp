// When runs of a batched function start, and which requests they take (BT-1 to BT-3, BT-9, BT-13); and a model of it.
#include "caftan/rpc/internal/batch_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace caftan::rpc::batch_queue_test {
namespace {

using namespace std::chrono_literals;
using Items = std::vector<int>;

constexpr base::TimePoint kStart = base::TimePoint(1h);
constexpr BatchLimits kThree{.max_size = 3, .max_wait = 10ms};

TEST(BatchQueueTest, BT1_AFullBatchStartsARunAtOnce) {
  BatchQueue<int> queue(kThree);
  EXPECT_FALSE(queue.join(1, kStart).run);
  EXPECT_FALSE(queue.join(2, kStart).run);
  EXPECT_TRUE(queue.join(3, kStart).run);
  EXPECT_FALSE(queue.join(4, kStart).run) << "the next batch has one request";
  EXPECT_EQ(queue.begin(), (Items{1, 2, 3}));
  EXPECT_FALSE(queue.join(5, kStart).run);
  EXPECT_TRUE(queue.join(6, kStart).run);
  EXPECT_EQ(queue.begin(), (Items{4, 5, 6}));
}

TEST(BatchQueueTest, BT1_ThePartialBatchRunsWhenItsFirstRequestHasWaitedLongEnough) {
  BatchQueue<int> queue(kThree);
  EXPECT_EQ(queue.join(1, kStart).wake_at, kStart + 10ms);
  EXPECT_FALSE(queue.join(2, kStart + 9ms).run);
  EXPECT_FALSE(queue.on_timer(kStart + 10ms - 1ns).run);
  EXPECT_TRUE(queue.on_timer(kStart + 10ms).run);
  EXPECT_EQ(queue.begin(), (Items{1, 2}));
  EXPECT_TRUE(queue.is_idle());
}

TEST(BatchQueueTest, BT1_WithoutAWaitEachRequestStartsARunThatHasNoRoomInOneAlready) {
  BatchQueue<int> queue({.max_size = 2, .max_wait = 0ns});
  EXPECT_TRUE(queue.join(1, kStart).run);
  EXPECT_FALSE(queue.join(2, kStart).run) << "the run that is started has room for it";
  EXPECT_TRUE(queue.join(3, kStart).run);
  EXPECT_EQ(queue.begin(), (Items{1, 2}));
  EXPECT_EQ(queue.begin(), (Items{3}));
  EXPECT_TRUE(queue.is_idle());
}

TEST(BatchQueueTest, BT2_ARunTakesWhatCameSinceItWasStarted) {
  BatchQueue<int> queue(kThree);
  (void)queue.join(1, kStart);
  EXPECT_TRUE(queue.on_timer(kStart + 10ms).run);
  const BatchNext next = queue.join(2, kStart + 11ms);
  EXPECT_FALSE(next.run || next.wake_at) << "the run that is started takes it";
  (void)queue.join(3, kStart + 11ms);
  EXPECT_EQ(queue.join(4, kStart + 12ms).wake_at, kStart + 22ms) << "it is full";
  EXPECT_EQ(queue.begin(), (Items{1, 2, 3}));
  ASSERT_NE(queue.first(), nullptr);
  EXPECT_EQ(*queue.first(), 4);
}

TEST(BatchQueueTest, BT3_OneTimerIsEnough) {
  BatchQueue<int> queue(kThree);
  EXPECT_TRUE(queue.join(1, kStart).wake_at);
  EXPECT_FALSE(queue.join(2, kStart).wake_at);
  EXPECT_TRUE(queue.join(3, kStart).run);
  EXPECT_EQ(queue.begin().size(), 3U);
  EXPECT_FALSE(queue.is_idle()) << "its timer will go off";
  EXPECT_FALSE(queue.join(4, kStart + 2ms).wake_at) << "the timer of the first batch is earlier";
  const BatchNext next = queue.on_timer(kStart + 10ms);
  EXPECT_FALSE(next.run);
  EXPECT_EQ(next.wake_at, kStart + 12ms);
  EXPECT_TRUE(queue.on_timer(kStart + 12ms).run);
}

TEST(BatchQueueTest, BT9_AWorkerThatStopsRunsWhatWaitsAndLetsNothingWait) {
  BatchQueue<int> queue(kThree);
  EXPECT_FALSE(queue.close(kStart).run) << "nothing waits";
  EXPECT_TRUE(queue.join(1, kStart).run);
  EXPECT_EQ(queue.begin(), (Items{1}));
  BatchQueue<int> other(kThree);
  (void)other.join(1, kStart);
  EXPECT_TRUE(other.close(kStart).run);
  EXPECT_FALSE(other.close(kStart).run) << "its run is started";
  EXPECT_EQ(other.begin(), (Items{1}));
}

TEST(BatchQueueTest, BT13_FewerRequestsAreEnoughFromTheChangeOn) {
  BatchQueue<int> queue(kThree);
  for (int i = 1; i <= 2; ++i) EXPECT_FALSE(queue.join(i, kStart).run);
  queue.set_max_size(2);
  EXPECT_TRUE(queue.look(kStart).run) << "two wait already";
  EXPECT_FALSE(queue.look(kStart).run);
  EXPECT_EQ(queue.begin(), (Items{1, 2}));
  EXPECT_FALSE(queue.join(3, kStart).run);
  EXPECT_TRUE(queue.join(4, kStart).run);
  EXPECT_EQ(queue.begin(), (Items{3, 4}));
}

TEST(BatchQueueTest, BT13_SeveralRunsStartWhereSeveralAreFull) {
  BatchQueue<int> queue({.max_size = 10, .max_wait = 10ms});
  for (int i = 1; i <= 7; ++i) EXPECT_FALSE(queue.join(i, kStart).run);
  queue.set_max_size(3);
  EXPECT_TRUE(queue.look(kStart).run);
  EXPECT_TRUE(queue.look(kStart).run);
  EXPECT_FALSE(queue.look(kStart).run);
  EXPECT_EQ(queue.begin(), (Items{1, 2, 3}));
  EXPECT_EQ(queue.begin(), (Items{4, 5, 6}));
  EXPECT_TRUE(queue.on_timer(kStart + 10ms).run) << "the seventh waits no longer than before";
  EXPECT_EQ(queue.begin(), (Items{7}));
}

TEST(BatchQueueTest, BT13_ARunKeepsTheSizeWithWhichItWasStarted) {
  BatchQueue<int> queue({.max_size = 1, .max_wait = 10ms});
  EXPECT_TRUE(queue.join(1, kStart).run);
  EXPECT_TRUE(queue.join(2, kStart).run);
  queue.set_max_size(3);
  EXPECT_FALSE(queue.look(kStart).run);
  EXPECT_EQ(queue.begin(), (Items{1}));
  EXPECT_EQ(queue.begin(), (Items{2}));
  EXPECT_TRUE(queue.is_idle());
}

/// Drives a queue at random, and checks after each event what the rules say of all requests that wait.
class Model {
 public:
  Model(std::uint64_t seed, BatchLimits limits) : random_(seed), limits_(limits), queue_(limits) {}

  void run(int events) {
    for (int i = 0; i < events; ++i) {
      step();
      check();
    }
    follow(queue_.close(now_), true);
    check();
    while (!runs_.empty()) begin();
    EXPECT_TRUE(waiting_.empty());
    if (timer_) follow(fire(), false);
    EXPECT_TRUE(queue_.is_idle());
    Items all(static_cast<std::size_t>(last_));
    std::iota(all.begin(), all.end(), 1);
    EXPECT_EQ(taken_, all) << "each request once, in the order in which they came";
  }

 private:
  void step() {
    switch (random_() % 9) {
      case 0:
      case 1:
      case 2:
      case 3:
        waiting_.push_back(now_);
        return follow(queue_.join(++last_, now_), false);
      case 4:
      case 5:
        if (!runs_.empty()) begin();
        return;
      case 6:
        return change_size();
      default:
        return pass(base::Duration(1 + random_() % 4000));
    }
  }
  void change_size() {
    limits_.max_size = 1 + random_() % 5;
    queue_.set_max_size(limits_.max_size);
    BatchNext next;
    do {
      next = queue_.look(now_);
      follow(next, false);
    } while (next.run);
  }
  /// Lets time pass, and the timer go off on its way, perhaps late.
  void pass(base::Duration time) {
    now_ += time;
    if (timer_ && *timer_ <= now_) follow(fire(), false);
  }
  BatchNext fire() {
    now_ = std::max(now_, *timer_);
    timer_.reset();
    return queue_.on_timer(now_);
  }
  void follow(const BatchNext& next, bool closed) {
    if (next.run) {
      ASSERT_GT(without_run(), 0U) << "a run for nothing";
      const bool is_due = waiting_[waiting_.size() - without_run()] + limits_.max_wait <= now_;
      EXPECT_TRUE(closed || is_due || without_run() >= limits_.max_size) << "a run too early";
      runs_.push_back(limits_.max_size);
    }
    if (next.wake_at) {
      EXPECT_FALSE(timer_) << "a second timer";
      EXPECT_GT(*next.wake_at, now_);
      timer_ = next.wake_at;
    }
  }
  void begin() {
    const Items batch = queue_.begin();
    EXPECT_FALSE(batch.empty());
    EXPECT_EQ(batch.size(), std::min(waiting_.size(), runs_.front()));
    runs_.pop_front();
    taken_.insert(taken_.end(), batch.begin(), batch.end());
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(batch.size()));
  }
  std::size_t without_run() const {
    const std::size_t room = std::accumulate(runs_.begin(), runs_.end(), std::size_t{0});
    return waiting_.size() > room ? waiting_.size() - room : 0;
  }
  void check() const {
    if (without_run() == 0) return;
    EXPECT_LT(without_run(), limits_.max_size) << "a full batch without a run";
    const base::TimePoint due = waiting_[waiting_.size() - without_run()] + limits_.max_wait;
    ASSERT_TRUE(timer_) << "a request that waits for ever";
    EXPECT_LE(*timer_, due);
    EXPECT_GT(due, now_) << "a request that waits too long";
  }

  std::mt19937_64 random_;
  BatchLimits limits_;
  BatchQueue<int> queue_;
  base::TimePoint now_ = kStart;
  std::optional<base::TimePoint> timer_;
  std::deque<base::TimePoint> waiting_;  // when they came
  std::deque<std::size_t> runs_;         // the sizes of those that are started and have not begun
  int last_ = 0;
  Items taken_;
};

TEST(BatchQueueModel, BT1_BT2_BT3_BT13_HoldInEveryOrderOfEvents) {
  for (std::uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const BatchLimits limits{.max_size = 1 + seed % 5, .max_wait = base::Duration((seed % 4) * 2500)};
    Model(seed, limits).run(200);
  }
}

}  // namespace
}  // namespace caftan::rpc::batch_queue_test
