// Workers whose runners compute for long: their peers do not declare them lost (T1), and a reply does not wait for the
// end of the computation (T6).
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "caftan/actors/worker.hpp"
#include "caftan/testing/cluster.hpp"
#include "caftan/transport/stepped_executor.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"
#include "gate.hpp"

namespace caftan::test::busy_worker_test {
namespace {

using namespace std::chrono_literals;

Gate gate;
bool compute() { return gate.pass(); }
int add(int a, int b) { return a + b; }
std::int64_t count(const at::Tensor& tensor) { return tensor.numel(); }

struct Open {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Promise<int>> promises;
} unanswered;
Future<int> later() {
  const std::lock_guard lock(unanswered.mutex);
  unanswered.changed.notify_all();
  return unanswered.promises.emplace_back().future();
}
bool answer_and_compute() {
  {
    const std::lock_guard lock(unanswered.mutex);
    for (auto& promise : unanswered.promises) promise.set(7);
    unanswered.promises.clear();
  }
  return gate.pass();
}

Registry make_registry() {
  Registry registry;
  registry.add<&compute>("compute");
  registry.add<&add>("add");
  registry.add<&count>("count");
  registry.add<&later>("later");
  registry.add<&answer_and_compute>("answer_and_compute");
  return registry;
}

/// Three workers with two runners each, as three processes.
class BusyWorker : public ::testing::TestWithParam<const char*> {
 protected:
  void start(base::Duration heartbeat) {
    gate.close();
    std::vector<WorkerAddress> world;
    for (const std::string name : {"a", "b", "c"}) {
      const std::string kind = GetParam();
      world.push_back({name, kind != "tcp" ? kind + ":" + (folder_ / name) : name == "a" ? "tcp:127.0.0.1:0" : ""});
    }
    for (const std::string name : {"a", "b", "c"}) {
      WorkerOptions options;
      options.name = name;
      options.world = world;
      options.secret = "shared by this test";
      options.heartbeat = heartbeat;
      options.peer_timeout = kBeats * heartbeat;
      options.executor =
          std::make_shared<transport::ThreadedExecutor>(transport::ThreadedExecutor::Options{.runners = 2});
      options.on_peer_down = [this, name](const std::string& peer, const Error& reason) {
        const std::lock_guard lock(mutex_);
        lost_ += name + " lost " + peer + ": " + reason.message() + "\n";
      };
      workers_.push_back(Worker::launch(std::move(options), make_registry()).value());
      if (name == "a") world[0].address = workers_[0]->address();
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
  }
  ~BusyWorker() override {
    gate.open();
    const std::lock_guard lock(unanswered.mutex);
    unanswered.promises.clear();
  }
  std::uint64_t pings_of(const Worker& worker) {
    std::uint64_t pings = 0;
    for (const SentFrames& sent : worker.traffic()) pings += sent.kind == "ping" ? sent.frames : 0;
    return pings;
  }
  std::string lost() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }
  /// Lets more time pass than a silent peer has, as the pings of b show; ends early when a peer was lost.
  void outlast_the_timeout() {
    base::SteadyClock clock;
    transport::ThreadedExecutor executor({.runners = 1});
    const std::uint64_t enough = pings_of(*workers_[1]) + 2 * 2 * kBeats;
    while (lost().empty() && pings_of(*workers_[1]) < enough) {
      executor.with_wait([&](base::Executor::Wait& wait) { wait.wait(clock.now() + 10ms, nullptr); });
    }
  }

  static constexpr int kBeats = 10;
  Folder folder_;
  std::mutex mutex_;
  std::string lost_;
  std::vector<std::unique_ptr<Worker>> workers_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, BusyWorker, ::testing::Values("shm", "unix", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(BusyWorker, T1_SE31_WhoseRunnersAllComputeIsNotLost) {
  start(100ms);
  auto one = workers_[0]->rpc_async<&compute>("b");
  auto two = workers_[0]->rpc_async<&compute>("b");
  gate.wait_for(2);
  outlast_the_timeout();
  EXPECT_EQ(lost(), "");
  gate.open();
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(two.get());
  EXPECT_EQ(workers_[2]->rpc_sync<&add>("b", 1, 2), 3);
  EXPECT_EQ(lost(), "");
}

TEST_P(BusyWorker, T1_SE30_WhoHasABacklogIsNotLostByAnIdlePeerAndLosesNone) {
  start(100ms);
  std::vector<Future<bool>> queued;
  for (int i = 0; i < 200; ++i) queued.push_back(workers_[0]->rpc_async<&compute>("b"));
  gate.wait_for(2);
  outlast_the_timeout();
  EXPECT_EQ(lost(), "");
  gate.open();
  for (Future<bool>& call : queued) EXPECT_TRUE(call.get());
  EXPECT_EQ(workers_[2]->rpc_sync<&add>("b", 1, 2), 3);
  EXPECT_EQ(workers_[1]->rpc_sync<&add>("c", 1, 2), 3);
}

TEST_P(BusyWorker, T6_AnAnswerLeavesWhileTheTaskThatGaveItComputes) {
  start(1min);  // so long a period that no ping leaves, which would take the reply along
  // The time-out is less than the 5 s of a handshake: when the timer of the handshake runs, the reply leaves, too.
  auto waiting = workers_[0]->with({.timeout = 3s}).rpc_async<&later>("b");
  {
    std::unique_lock lock(unanswered.mutex);
    unanswered.changed.wait(lock, [] { return !unanswered.promises.empty(); });
  }
  auto computing = workers_[0]->rpc_async<&answer_and_compute>("b");
  EXPECT_EQ(waiting.get(), 7);  // the gate is closed
  gate.open();
  EXPECT_TRUE(computing.get()) << "the answer came only when the task was over";
}

TEST(LocalSession, K10_SE32_ShowsNoSignsOfLife) {
  testing::Cluster cluster(1, {"a", "b", "c"}, &make_registry);
  cluster.run_until_idle();
  cluster.executor().advance(1h);
  for (std::size_t i = 0; i < 3; ++i) {
    for (const SentFrames& sent : cluster[i].traffic()) EXPECT_NE(sent.kind, "ping");
  }
  EXPECT_EQ(cluster[0].rpc_sync<&add>("b", 1, 2), 3);
}

TEST(LocalSession, T12_WorkersOfOneExecutorShareWhatTheyKeepForTensorsAndTheLastLeavesNothing) {
  const auto executor = std::make_shared<transport::SteppedExecutor>(1);
  wire::Block block = executor->pool().take(1 << 20).value();
  {
    WorkerOptions options;
    options.name = "a";
    options.world = {{"a", ""}};
    options.executor = executor;
    options.network = std::make_shared<LocalNetwork>();
    const auto worker = Worker::start(std::move(options), make_registry()).value();
    block = wire::Block();
    EXPECT_EQ(executor->pool().cached_bytes(), std::size_t{1} << 20);
  }
  EXPECT_EQ(executor->pool().cached_bytes(), 0U);
}

TEST(LocalSession, T12_WhatASessionReceivesComesFromTheCacheOfTheExecutor) {
  testing::Cluster cluster(1, {"a", "b"}, &make_registry);
  EXPECT_LT(cluster.executor().pool().cached_bytes(), 4096U);  // only payloads of small frames
  EXPECT_EQ(cluster[0].rpc_sync<&count>("b", at::ones({1 << 18})), 1 << 18);
  cluster.run_until_idle();
  EXPECT_GE(cluster.executor().pool().cached_bytes(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace caftan::test::busy_worker_test
