// The same calls over every kind of channel, with threads and real sockets.
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "caftan/actors/worker.hpp"
#include "caftan/rpc/wait.hpp"
#include "caftan/tensor/operators.hpp"
#include "caftan/transport/threaded_executor.hpp"
#include "folder.hpp"

namespace caftan::channel_call_test {
namespace {

int add(int a, int b) { return a + b; }
at::Tensor echo(const at::Tensor& t) { return t; }
int bounce(Worker& worker, const std::string& other, int depth) {
  return depth == 0 ? 0 : 1 + worker.rpc_sync<&bounce>(other, worker.name(), depth - 1);
}

Registry make_registry() {
  Registry registry;
  registry.add<&add>("add");
  registry.add<&echo>("echo");
  registry.add<&bounce>("bounce");
  return registry;
}

struct ChannelCase {
  const char* kind;
  unsigned runners;  // of each worker's executor
  bool spins = false;
};

class ChannelCall : public ::testing::TestWithParam<ChannelCase> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam().kind;
    // However many cores there are: what waits without sleep must not depend on it.
    const transport::SpinOptions spin{.threads = GetParam().spins ? 2U : 0U, .learns = false, .cores = 1'000'000};
    std::vector<WorkerAddress> world{{"a", ""}, {"b", ""}, {"c", ""}};
    if (kind == "unix" || kind == "shm") {
      for (auto& member : world) member.address = kind + ":" + (folder_ / member.name);
    }
    for (std::size_t i = 0; i < world.size(); ++i) {
      WorkerOptions options;
      options.name = world[i].name;
      options.world = world;
      options.secret = "shared by this test";
      options.executor = std::make_shared<transport::ThreadedExecutor>(
          transport::ThreadedExecutor::Options{.runners = GetParam().runners, .spin = spin});
      if (kind == "loopback") {
        options.network = network_;
        if (!shared_) shared_ = options.executor;
        options.executor = shared_;
      }
      if (kind == "tcp") {
        // The first worker listens at a port that the system chooses; the others get the first one's address here, and
        // each other's addresses from the first one.
        options.world[0].address = i == 0 ? "tcp:127.0.0.1:0" : workers_[0]->address();
      }
      workers_.push_back(Worker::launch(std::move(options), make_registry()).value());
    }
    for (const auto& worker : workers_) worker->wait_until_ready().value();
  }

  test::Folder folder_;
  std::shared_ptr<LocalNetwork> network_ = std::make_shared<LocalNetwork>();
  std::shared_ptr<transport::PollingExecutor> shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, ChannelCall,
                         ::testing::Values(ChannelCase{"shm", 1}, ChannelCase{"shm", 2}, ChannelCase{"shm", 1, true},
                                           ChannelCase{"shm", 2, true}, ChannelCase{"unix", 1}, ChannelCase{"unix", 2},
                                           ChannelCase{"tcp", 1}, ChannelCase{"tcp", 2}, ChannelCase{"loopback", 1},
                                           ChannelCase{"loopback", 2}),
                         [](const auto& info) {
                           return std::string(info.param.kind) + std::to_string(info.param.runners) +
                                  (info.param.spins ? "spinning" : "");
                         });

TEST_P(ChannelCall, IsOfTheKindThatWasAskedFor) {
  EXPECT_EQ(workers_[0]->channel_kind("b"), GetParam().kind);
  EXPECT_EQ(workers_[2]->channel_kind("b"), GetParam().kind);
  EXPECT_EQ(workers_[0]->channel_kind("a"), "loopback");
}

TEST_P(ChannelCall, SP1_DP7_ManySmallCalls) {
  for (int i = 0; i < 500; ++i) ASSERT_EQ(workers_[0]->rpc_sync<&add>("b", i, 1), i + 1);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(workers_[1]->rpc_sync<&add>("b", i, 1), i + 1);
}

TEST_P(ChannelCall, PipelinedCallsAllComeBack) {
  std::vector<Future<int>> futures;
  for (int i = 0; i < 1000; ++i) futures.push_back(workers_[0]->rpc_async<&add>(i % 2 ? "b" : "c", i, i));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(futures[static_cast<std::size_t>(i)].get(), 2 * i);
}

TEST_P(ChannelCall, AnswersComeToAThreadThatWaitsElsewhere) {
  // Blocking calls first: after them this thread still reads the session, and no runner may have taken reading over
  // yet.
  for (int i = 0; i < 30; ++i) ASSERT_EQ(workers_[0]->rpc_sync<&add>("b", i, 1), i + 1);
  struct Sum {
    std::atomic<int> total{0};
    std::atomic<int> open{5};
    std::promise<int> done;
  };
  const auto sum = std::make_shared<Sum>();
  for (int i = 0; i < 5; ++i) {
    // Requests 2 to 5 stand in the outbox behind the one before, and may leave together with it.
    workers_[0]
        ->rpc_async<&add>("b", i, 1)
        .then([sum](const Result<int>& result) {
          sum->total += result ? *result : 1000;
          if (--sum->open == 0) sum->done.set_value(sum->total);
        })
        .forget();
  }
  EXPECT_EQ(sum->done.get_future().get(), 15);
}

TEST_P(ChannelCall, LargeTensorsArriveWhole) {
  const at::Tensor t = at::rand({4 * 1024 * 1024});
  EXPECT_TRUE(workers_[0]->rpc_sync<&echo>("b", t).equal(t));
}

// Each echo fills a ring many times both ways, so each side waits for room while it has bytes to read.
TEST_P(ChannelCall, DP3_EchoesOfOneMebibyteFromBothSidesAllComeBack) {
  const at::Tensor t = at::rand({256 * 1024});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(workers_[0]->rpc_sync<&echo>("b", t).equal(t)) << i;
  for (int i = 0; i < 50; ++i) {
    Future<at::Tensor> forth = workers_[0]->rpc_async<&echo>("b", t);
    Future<at::Tensor> back = workers_[1]->rpc_async<&echo>("a", t);
    ASSERT_TRUE(back.get().equal(t)) << i;
    ASSERT_TRUE(forth.get().equal(t)) << i;
  }
}

TEST_P(ChannelCall, NestedBlockingCallsFinishWithOneRunner) {
  EXPECT_EQ(workers_[0]->rpc_sync<&bounce>("b", "a", 12), 12);
}

TEST_P(ChannelCall, ThreadsCallAtTheSameTime) {
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; ++i) {
          if (workers_[static_cast<std::size_t>(t % 3)]->rpc_sync<&add>("b", i, t) != i + t) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(ChannelCall, M2_ReferencesEndEverywhere) {
  {
    RRef<int> r = workers_[0]->remote<&add>("b", 20, 22);
    EXPECT_EQ(r.to_here(), 42);
    EXPECT_EQ(workers_[1]->counters().owner_rrefs, 1U);
  }
  // References are counted while both workers run, because a worker that stops drops its table. The reply to each call
  // comes behind the frames that end the reference.
  const auto left = [this] { return workers_[1]->counters().owner_rrefs + workers_[0]->counters().user_rrefs; };
  for (int i = 0; i < 10'000 && left() > 0; ++i) workers_[0]->rpc_sync<&add>("b", 1, 2);
  EXPECT_EQ(left(), 0U);
}

}  // namespace
}  // namespace caftan::channel_call_test
