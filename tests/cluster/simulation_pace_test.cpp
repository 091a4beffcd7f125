// Partitions over threads, where a frame that is held back would keep the other partition waiting: both compute at the
// same time.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "caftan/caftan.hpp"
#include "caftan/sim/internal/partition.hpp"
#include "group_threads.hpp"

namespace caftan::test::simulation_pace_test {
namespace {

constexpr int kTicks = 30;

/// In each window the first partition waits until the second has begun the same window.
class Pace {
 public:
  void begin_second() {
    const std::lock_guard lock(mutex_);
    ++second_;
    changed_.notify_all();
  }
  void wait_for_second(int window) {
    std::unique_lock lock(mutex_);
    if (is_late_) return;
    is_late_ = !changed_.wait_for(lock, std::chrono::seconds(20), [&] { return second_ >= window; });
  }
  bool is_late() {
    const std::lock_guard lock(mutex_);
    return is_late_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int second_ = 0;
  bool is_late_ = false;
};

struct Tick {
  void serialize(auto&, unsigned) {}
};

/// A process whose tick of each unit is a window.
struct Ticking {
  using Events = sim::Events<Tick>;
  Pace* pace;
  bool is_first;
  int window = 0;

  void start(sim::LpContext& lp) const { lp.schedule(1.0, Tick{}); }
  void on(const Tick&, sim::LpContext& lp) {
    ++window;
    if (is_first) {
      pace->wait_for_second(window);
      // The frame of the second partition arrives while this one still computes.
      std::atomic<int> computed = 0;
      while (computed.fetch_add(1) < 300'000) {
      }
    } else {
      pace->begin_second();
    }
    lp.schedule(1.0, Tick{});
  }
  void serialize(auto& archive, unsigned) { archive& window; }
};

Pace* pace_of_test = nullptr;

class TickingPartition : public sim::PartitionCalls {
 public:
  TickingPartition()
      : sim::PartitionCalls(
            [](sim::Builder& builder) {
              builder.lookahead(1.0);
              builder.add<Ticking>(std::uint64_t{2}, [](sim::LpId id) {
                return Ticking{.pace = pace_of_test, .is_first = id.value == 0};
              });
            },
            "", [](const std::string&) {}) {}
};

TEST(SimulationPace, SM5_AFrameLeavesBeforeItsSenderBeginsTheNextWindow) {
  Pace pace;
  pace_of_test = &pace;
  Registry registry;
  registry.add<TickingPartition>("test.ticking")
      .constructor<>()
      .method<&sim::PartitionCalls::open>("open")
      .method<&sim::PartitionCalls::advance>("advance");
  GroupThreads workers(3, {}, registry);
  sim::OpenRequest request{.simulation = 7, .members = {"w1", "w2"}, .events = 100};
  std::vector<RRef<TickingPartition>> partitions;
  for (const std::string& member : request.members) {
    partitions.push_back(workers[0].remote<TickingPartition>(member));
    (void)partitions.back().rpc_sync<&sim::PartitionCalls::open>(request);
    ++request.index;
  }
  std::vector<Future<sim::BorderReply>> advancing;
  for (const auto& partition : partitions) {
    advancing.push_back(partition.with({.timeout = base::Duration::zero()})
                            .rpc_async<&sim::PartitionCalls::advance>(
                                sim::AdvanceRequest{.border = sim::time_of(kTicks + 0.5).value()}));
  }
  for (auto& one : advancing) EXPECT_TRUE(std::move(one).result());
  EXPECT_FALSE(pace.is_late()) << "a window began while the other partition had not got the frame before it";
  pace_of_test = nullptr;
}

}  // namespace
}  // namespace caftan::test::simulation_pace_test
